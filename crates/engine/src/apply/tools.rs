//! Facts of our tools in the hands of agents.

use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::tool_call::{ToolRequest, ToolsConnected};

use crate::changes::{Changes, RowRef};
use crate::state::State;

pub(super) fn tool_event(state: &mut State, record: &EventRecord, changes: &mut Changes) {
    match &record.event {
        Event::GenerationToolsConnected { generation_id, process, client } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.tools =
                    Some(ToolsConnected { process: process.clone(), client: client.clone(), at: record.at });
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        Event::SessionToolCalled { generation_id, call, .. } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                generation.tool_calls.push(call.clone());
                changes.touch(RowRef::Generation(*generation_id));
            }
            if let ToolRequest::ReportCompletion { report } = &call.request
                && let Some(run) = record.scope.run_id.and_then(|id| state.runs.get_mut(&id))
                && run.is_open()
            {
                run.reported = Some(report.clone());
                changes.touch(RowRef::Run(run.id));
            }
        }
        Event::SessionToolAnswered { generation_id, process, request_id, answer, .. } => {
            if let Some(generation) = state.generations.get_mut(generation_id) {
                let mut calls = generation.tool_calls.iter_mut();
                if let Some(call) =
                    calls.find(|call| call.process == *process && call.request_id == *request_id)
                {
                    call.answer = Some(answer.clone());
                }
                changes.touch(RowRef::Generation(*generation_id));
            }
        }
        _ => {}
    }
}
