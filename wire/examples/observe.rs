//! Observes one server and prints the result: `observe URL` or `observe PROGRAM [ARGUMENT…]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use contract::json::Document;
use std::process::ExitCode;
use wire::{HttpEndpoint, ListOutcome, ObserveLimits, StdioLaunch, Upstream, observe};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else {
        eprintln!("usage: observe URL | observe PROGRAM [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let upstream = match first.to_str().filter(|text| text.contains("://")).map(str::parse) {
        Some(Ok(url)) => Upstream::Http(HttpEndpoint {
            url,
            headers: Vec::new(),
            allow_private: false,
            authorizer: None,
        }),
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
        None => Upstream::Stdio(StdioLaunch {
            program: first,
            arguments: arguments.collect(),
            environment: Vec::new(),
            directory: None,
            confinement: None,
        }),
    };
    let progress = |step| eprintln!("{step:?}");
    match observe(&upstream, &ObserveLimits::default(), &progress).await {
        Ok(observed) => {
            println!("{:?}, handshake of {} bytes", observed.era, observed.handshake.len());
            for (list, outcome) in &observed.lists {
                println!("{}: {}", list.member(), describe(list.member(), outcome));
            }
            if let Some(key) = &observed.tls_key {
                println!("TLS key {key}");
            }
            for note in &observed.notes {
                println!("note: {note}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(11)
        }
    }
}

fn describe(member: &str, outcome: &ListOutcome) -> String {
    match outcome {
        ListOutcome::NotOffered => "not offered".to_owned(),
        ListOutcome::Unreadable(reason) => format!("unreadable: {reason}"),
        ListOutcome::Pages(pages) => {
            let entries = pages.iter().filter_map(|page| {
                let document = Document::parse(page).ok()?;
                Some(document.root().get(member)?.items().count())
            });
            let bytes: usize = pages.iter().map(|page| page.len()).sum();
            format!("{} in {} pages of {bytes} bytes", entries.sum::<usize>(), pages.len())
        }
    }
}
