//! What holds for every set of layers and every request.

use proptest::prelude::*;
use rallypoint_model::permission::{
    AgentPermissions, LayerSource, PermissionDecision, PermissionRule, PolicyLayer, Preset, RuleEffect,
};

use super::matching::{Place, place};
use super::{CommandLine, Request, ToolKind, Verdict, check_rule, decide};

const PATHS: &[&str] = &[
    "a",
    "/w/a",
    "/w/sub/.env",
    "sub/.env",
    "../x",
    "/w/../etc/passwd",
    "/etc/passwd",
    "",
    "/w",
    "/wx/a",
    "link/../../etc/passwd",
    "~/x",
    " /etc/passwd",
    "file:/etc/passwd",
    "..\\x",
    "\u{ff0e}\u{ff0e}/x",
    "na\u{ef}ve/\u{2215}etc",
];
const PATTERNS: &[&str] = &["**", "a", "sub/**", "**/.env", "/etc/**", "/w/sub/*", "*"];
const COMMANDS: &[&str] = &[
    "make test",
    "make test; rm x",
    "make test && curl x",
    "A=1 make test",
    "(make test)",
    "make 'test'",
    "make $(id)",
    "git push origin",
    "git -C . push",
    "rm -rf x",
    "echo x | sh",
    "ls *",
    "if true; then make test; fi",
    "make test > /etc/x",
    "",
];
const COMMAND_PATTERNS: &[&str] = &["make test", "make *", "git push", "rm *", "ls", "git * push", "echo *"];

fn some_of(words: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(words).prop_map(str::to_owned), 0..=most)
}

fn rule() -> impl Strategy<Value = PermissionRule> {
    let kinds: Vec<&'static str> =
        ToolKind::ALL.into_iter().map(ToolKind::as_str).chain(std::iter::once("*")).collect();
    let tools = prop::collection::vec(prop::sample::select(kinds).prop_map(str::to_owned), 0..=2);
    let effects = vec![RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Deny];
    (prop::sample::select(effects), tools, some_of(PATTERNS, 2), some_of(COMMAND_PATTERNS, 2))
        .prop_map(|(effect, tools, paths, commands)| PermissionRule { effect, tools, paths, commands })
        .prop_filter("a rule that a configuration may hold", |rule| check_rule(rule).is_ok())
}

fn layer() -> impl Strategy<Value = PolicyLayer> {
    (prop::sample::select(Preset::ALL.to_vec()), prop::collection::vec(rule(), 0..4), any::<bool>()).prop_map(
        |(preset, rules, own)| PolicyLayer {
            source: LayerSource::Request,
            inherited_from: (!own).then(|| "lead".to_owned()),
            preset,
            rules,
        },
    )
}

fn layers() -> impl Strategy<Value = Vec<PolicyLayer>> {
    prop::collection::vec(layer(), 1..4)
}

fn request() -> impl Strategy<Value = Request> {
    let kinds: Vec<&'static str> = ToolKind::ALL.into_iter().map(ToolKind::as_str).collect();
    let command = prop::option::of(prop::sample::select(COMMANDS));
    (prop::sample::select(kinds), some_of(PATHS, 2), command)
        .prop_map(|(kind, paths, command)| Request::new(kind, paths, command.map(CommandLine::of_text), "/w"))
}

fn verdict(layers: &[PolicyLayer], request: &Request) -> Verdict {
    decide(&AgentPermissions { layers: layers.to_vec(), ..AgentPermissions::default() }, request)
}

fn decision(layers: &[PolicyLayer], request: &Request) -> PermissionDecision {
    verdict(layers, request).decision
}

/// The rule that a verdict names, by its number.
fn named<'a>(verdict: &Verdict, layers: &'a [PolicyLayer]) -> Option<&'a PermissionRule> {
    let (number, text) = verdict.rule.strip_prefix("rule ")?.split_once(": ")?;
    let number = number.parse::<usize>().ok()?.checked_sub(1)?;
    let text = text.split("; `").next()?;
    let rules = layers.iter().filter(|layer| layer.title() == verdict.layer);
    rules.filter_map(|layer| layer.rules.get(number)).find(|rule| rule.to_string() == text)
}

/// Everything that a text of this shape may become for some shell.
fn wrapped(inner: &str, form: usize) -> String {
    match form {
        0 => format!("make test; {inner}"),
        1 => format!("make test && {inner}"),
        2 => format!("make test | {inner}"),
        3 => format!("make test & {inner}"),
        4 => format!("make test\n{inner}"),
        5 => format!("make test || {inner}"),
        6 => format!("make test $({inner})"),
        7 => format!("make test `{inner}`"),
        8 => format!("make test <({inner})"),
        9 => format!("({inner}) && make test"),
        10 => format!("make test \"$({inner})\""),
        11 => format!("LD_PRELOAD=./x.so make test && {inner}"),
        12 => format!("env A=1 {inner}"),
        13 => format!("sh -c '{inner}'"),
        14 => format!("if make test; then {inner}; fi"),
        15 => format!("make test;{inner}"),
        16 => format!("! {inner}"),
        17 => format!("make test\r\n{inner}"),
        _ => format!("{{ make test; {inner}; }}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_layer_more_never_lets_through_more(layers in layers(), more in layer(), request in request(), at in 0_usize..4) {
        let mut all = layers.clone();
        all.insert(at.min(layers.len()), more);
        prop_assert!(decision(&all, &request) >= decision(&layers, &request), "{all:#?} {request:?}");
    }

    #[test]
    fn a_denial_holds_whatever_else_is_said_in_any_layer(
        mut layers in layers(), request in request(), kind in 0_usize..4, at in 0_usize..4, more in rule(),
    ) {
        let all_tools = PermissionRule {
            effect: RuleEffect::Deny, tools: vec!["*".to_owned()], paths: Vec::new(), commands: Vec::new(),
        };
        let at = at.min(layers.len() - 1);
        let place = kind.min(layers[at].rules.len());
        layers[at].rules.insert(place, all_tools);
        layers[at].rules.push(PermissionRule { effect: RuleEffect::Allow, ..more });
        prop_assert_eq!(decision(&layers, &request), PermissionDecision::Reject);
    }

    #[test]
    fn a_rule_that_denies_or_asks_never_lets_through_more(layers in layers(), request in request(), more in rule()) {
        prop_assume!(more.effect != RuleEffect::Allow);
        let mut stricter = layers.clone();
        stricter[0].rules.push(more);
        // An ask rule may take the place of a preset that rejects, never of a rule or of a preset that is held.
        let before = decision(&layers, &request);
        let after = decision(&stricter, &request);
        if before != PermissionDecision::Reject {
            prop_assert!(after >= before, "{stricter:#?} {request:?}");
        }
    }

    #[test]
    fn what_is_held_to_looking_only_looks(mut layers in layers(), request in request(), held in layer()) {
        let acts = request.faces.iter().any(|face| {
            !matches!(face.kind, ToolKind::Read | ToolKind::Search | ToolKind::Think)
        });
        layers.push(PolicyLayer { preset: Preset::Readonly, ..held });
        if acts {
            prop_assert_eq!(decision(&layers, &request), PermissionDecision::Reject);
        }
        prop_assert_ne!(decision(&layers, &request), PermissionDecision::Ask, "nobody is asked under it");
    }

    #[test]
    fn an_explanation_names_what_decided(layers in layers(), request in request()) {
        let verdict = verdict(&layers, &request);
        let of_layer: Vec<PolicyLayer> =
            layers.iter().filter(|layer| layer.title() == verdict.layer).cloned().collect();
        prop_assert!(!of_layer.is_empty(), "{verdict:?}");
        if let Some(rule) = named(&verdict, &layers) {
            let silenced = verdict.rule.contains("never asks");
            let expected = match rule.effect {
                RuleEffect::Deny => PermissionDecision::Reject,
                RuleEffect::Ask if silenced => PermissionDecision::Reject,
                RuleEffect::Ask => PermissionDecision::Ask,
                RuleEffect::Allow => PermissionDecision::Allow,
            };
            prop_assert_eq!(verdict.decision, expected, "{:?}", verdict);
        } else {
            let preset = verdict.rule.trim_start_matches('`').split('`').next().unwrap_or_default().to_owned();
            prop_assert!(of_layer.iter().any(|layer| layer.preset.as_str() == preset), "{verdict:?}");
        }
        // Without any other layer it decides the same, or asks where another one has no voice to ask with.
        let alone = of_layer.iter().map(|layer| decision(std::slice::from_ref(layer), &request)).max();
        let silenced = verdict.rule.ends_with("never asks");
        prop_assert!(alone == Some(verdict.decision) || silenced, "{verdict:?} {alone:?}");
    }

    #[test]
    fn no_path_is_inside_that_leads_out(parts in prop::collection::vec(
        prop::sample::select(vec!["..", ".", "", "a", "w", "...", "\u{ff0e}\u{ff0e}", "~", "link", " ", "%2e%2e", "\u{e9}"]), 0..7,
    ), absolute in any::<bool>()) {
        let path = format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"));
        if let Place::Inside(plain) = place(&path, "/w") {
            prop_assert!(plain.starts_with("/w/") && plain.len() > 3, "{path:?} became {plain:?}");
            prop_assert!(!plain.split('/').any(|part| matches!(part, "." | "..")), "{path:?}");
            prop_assert!(!path.split('/').any(|part| part == ".."), "{path:?} may lead out through a link");
            let literal = if absolute { std::path::PathBuf::from(&path) } else { std::path::Path::new("/w").join(&path) };
            prop_assert!(literal.starts_with("/w"), "{path:?}");
        }
    }

    #[test]
    fn nothing_slips_through_beside_a_command_that_is_allowed(
        program in prop::sample::select(vec!["id", "rm x", "curl x", "/tmp/x", "./make test", "make2 test"]),
        form in 0_usize..19, quote in 0_usize..3,
    ) {
        let inner = match quote {
            0 => program.to_owned(),
            1 => program.replacen(char::is_alphabetic, "''\u{0}", 1).replace('\u{0}', &program[..1]),
            _ => format!("\"{program}\""),
        };
        let text = wrapped(&inner, form);
        let rules = vec![PermissionRule {
            effect: RuleEffect::Allow, tools: Vec::new(), paths: Vec::new(),
            commands: vec!["make test".to_owned(), "make test *".to_owned()],
        }];
        let layer = PolicyLayer { source: LayerSource::Request, inherited_from: None, preset: Preset::Standard, rules };
        for value in [serde_json::json!(text), serde_json::json!(["bash", "-lc", text])] {
            let command = CommandLine::of_value(&value);
            let request = Request::new("execute", Vec::new(), command, "/w");
            prop_assert_ne!(decision(std::slice::from_ref(&layer), &request), PermissionDecision::Allow, "{}", value);
        }
    }

    #[test]
    fn no_text_is_read_as_one_allowed_command_that_is_not_it(text in "[a-z ;&|<>(){}$`\\\\\n'\"=*#!~/.-]{0,24}") {
        let line = CommandLine::of_text(&text);
        if line.is_plain() {
            let odd = |letter: char| ";&|<>(){}$`\\\n#!*~".contains(letter);
            let operators = text.trim().chars().filter(|letter| ";&|\n".contains(*letter)).count();
            prop_assert!(line.parts.len() == 1 || operators > 0, "{text:?} {line:?}");
            for part in &line.parts {
                prop_assert!(part.iter().all(|word| !word.contains(odd)), "{text:?} {line:?}");
                prop_assert!(!part[0].contains('='), "{text:?} {line:?}");
            }
        }
    }
}
