//! One criterion to one piece of evidence.

use rallypoint_model::task::{Criterion, CriterionCheck, Evidence};

use crate::command_check::{Observed, check_command};
use crate::context::VerifyContext;
use crate::file_check::check_file;

/// Carries out the check of one criterion. `None` if only a person can answer it.
pub async fn verify_criterion(criterion: &Criterion, context: &VerifyContext<'_>) -> Option<Evidence> {
    let started_at = (context.now)();
    let (procedure, observed) = match &criterion.check {
        CriterionCheck::Command { command } => (command, check_command(command, context).await),
        CriterionCheck::File { path } => {
            let (result, detail) = check_file(context.cwd, path).await;
            (path, Observed { result, exit_code: None, detail })
        }
        CriterionCheck::Human { .. } => return None,
    };
    Some(Evidence {
        id: (context.new_id)(),
        criterion_id: criterion.id,
        result: observed.result,
        procedure: procedure.clone(),
        exit_code: observed.exit_code,
        started_at,
        ended_at: (context.now)(),
        detail: observed.detail,
    })
}

/// Checks one criterion after the other, all of them whatever the earlier ones gave: who corrects the work needs the
/// whole list. Criteria for a person are left out.
pub async fn verify_all(criteria: &[Criterion], context: &VerifyContext<'_>) -> Vec<Evidence> {
    let mut gathered = Vec::with_capacity(criteria.len());
    for criterion in criteria {
        gathered.extend(verify_criterion(criterion, context).await);
    }
    gathered
}
