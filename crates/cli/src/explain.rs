//! `thalweg explain`: what a verdict means.

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use model::Code;
use std::process::ExitCode;

pub(crate) fn run(args: &ExplainArgs, output: &Output) -> Result<ExitCode, Failure> {
    let Some(wanted) = &args.code else {
        let lines = Code::ALL.map(|code| {
            let first = infer::explain(code).lines().find(|line| !line.is_empty() && !line.starts_with('#'));
            format!("{:<24} {}", code.as_str(), first.unwrap_or_default())
        });
        output.result(&lines.join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let code = Code::ALL.into_iter().find(|code| code.as_str() == wanted).ok_or_else(|| {
        let known = Code::ALL.map(Code::as_str).join(", ");
        Failure::user(anyhow!("no verdict has the code '{wanted}'")).hint(format!("known: {known}"))
    })?;
    let text = infer::explain(code);
    if output.json {
        output.json_result(&serde_json::json!({"code": code, "text": text}))?;
    } else {
        output.result(text)?;
    }
    Ok(ExitCode::SUCCESS)
}
