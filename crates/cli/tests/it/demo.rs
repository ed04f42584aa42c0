//! The demonstration: a whole task with three agents, one of which is wrong at first.

use crate::help::Rally;

#[test]
fn the_demonstration_ends_proven_after_a_wrong_claim() {
    let rally = Rally::new();
    let ended = rally.run(&["demo"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("check `sh test.sh` failed (exit 1)"), "{}", ended.out);
    assert!(ended.out.contains("check `sh test.sh` passed (exit 0)"), "{}", ended.out);
}

#[test]
fn without_its_repair_the_demonstration_ends_unproven() {
    let rally = Rally::new();
    let ended = rally.run(&["demo", "--without-repair"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
}
