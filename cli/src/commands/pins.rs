//! `holdpoint pins --stdio`: the gate for an application that contains both the client and the
//! server. `HomePin` of the SDKs speaks this protocol (docs/pins-protocol.md).

use crate::approver;
use crate::arguments::Options;
use crate::arguments::admission::AdmissionArguments;
use crate::arguments::pins::PinsCommand;
use crate::failure::{Exit, Failure};
use crate::gate_session::{GateSession, Records, SessionPlan, check_descriptors};
use crate::observation::now;
use crate::target::Workplace;
use contract::surface::{Entry, EntryType};
use engine::acts::{ActError, Review, ReviewedHash, approve, hash_of};
use engine::application::{Acts, Application, ApplicationOutput};
use engine::document::EntryDocument;
use engine::server_text::ServerText;
use engine::stdio::{Behind, Front, Running, Surroundings, application_ends};
use gate::judge::Judgement;
use gate::server::ServerId;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;
use wire::application::{ApproveRequest, Open, ReviewRequest, VERSION};

pub(crate) fn run(_: &PinsCommand, options: &Options) -> Result<Exit, Failure> {
    check_descriptors()?;
    let (mut input, output) = application_ends()?;
    let open = match input.open()? {
        Ok(open) => open,
        Err(bad) => {
            output.fail(bad.reason(), &bad.to_string());
            return Err(Failure::usage(bad));
        }
    };
    let started = start(&open, options, &output);
    let (id, session, end) = started.inspect_err(|failure| {
        output.fail(reason_of(failure), &failure.to_string());
    })?;
    let GateSession { session, wakes, errands, export: _export } = session;
    let holdpoint = env!("CARGO_PKG_VERSION");
    let opened = json!({"opened": {"version": VERSION, "holdpoint": holdpoint, "server": id}});
    output.say(&opened.to_string())?;
    let grace = Duration::from_secs(1);
    let acts = Box::new(HomeActs { id, options: options.clone() });
    let running = Running::start(Surroundings {
        session,
        wakes,
        errands,
        // The application starts or reaches the server, so its origin is not known here.
        origin: Box::new(|| None),
        admission: None,
        prober: None,
        front: Front::Application(Application { input, output: output.clone(), acts }),
        behind: Behind::Application(end),
        grace,
    })?;
    running.finish()?;
    Ok(if output.has_failed() { Exit::Usage } else { Exit::Fine })
}

type Started = (ServerId, GateSession, std::sync::mpsc::Receiver<()>);

fn start(open: &Open, options: &Options, output: &ApplicationOutput) -> Result<Started, Failure> {
    let id: ServerId =
        open.server.parse().map_err(|error| Failure::usage(format!("`server`: {error}")))?;
    let workplace = Workplace::open(options)?;
    let configuration = &workplace.configuration;
    if configuration.requires_attestation(&id) || configuration.has_part_of_admission(&id) {
        return Err(Failure::usage(format!(
            "server `{id}` needs an attestation, and an application's session shows none: \
             put `holdpoint run` or the gateway in front of it"
        )));
    }
    let mut rules = configuration.rules(&id, None);
    rules.allowed = configuration.allowed_tools(&id, &AdmissionArguments::default(), None)?;
    let mut settings = configuration.session(&id);
    if let Some(seconds) = open.relist_max_age {
        settings.relist_max_age = Duration::from_secs(seconds);
    }
    let records = Records::open(&workplace.home, configuration)?;
    let (to_client, to_server, end) = output.ends();
    let plan = SessionPlan {
        workplace,
        rules,
        settings,
        launch: None,
        is_local: false,
        reporter: None,
        to_client: Box::new(to_client),
        to_server: Box::new(to_server),
    };
    Ok((id, plan.open(records, options)?, end))
}

/// The reason code that tells a program why it could not start.
fn reason_of(failure: &Failure) -> &'static str {
    match failure.exit {
        Exit::Usage => "configuration",
        Exit::Held | Exit::Evidence => "home",
        Exit::Fine
        | Exit::Unreachable
        | Exit::Internal
        | Exit::Denied
        | Exit::Unprotected
        | Exit::Server(_) => "internal",
    }
}

/// Reviews and approvals that the application asks for. Reads the home again each time: a person
/// may have decided meanwhile.
struct HomeActs {
    id: ServerId,
    options: Options,
}

impl HomeActs {
    fn reviewed(&self, request: &ReviewRequest) -> Result<String, Failure> {
        let review = Workplace::open(&self.options)?.review(&self.id, now())?;
        let is_asked = |entry: &&Judgement| match &request.tool {
            Some(tool) => entry.id.entry_type == EntryType::Tool && entry.id.key == *tool,
            None => true,
        };
        let entries: Result<Vec<_>, Failure> =
            review.waiting().filter(is_asked).map(WaitingEntry::of).collect();
        let reviewed = Reviewed { id: request.id, entries: entries? };
        serde_json::to_string(&ReviewLine { reviewed }).map_err(Failure::internal)
    }

    fn approved(&self, request: &ApproveRequest) -> Result<(), NotApproved> {
        let mut workplace = Workplace::open(&self.options)?;
        let hash: ReviewedHash =
            request.hash.parse().map_err(|error| NotApproved::of("other_hash", error))?;
        let review = workplace.review(&self.id, now())?;
        let keys: Vec<String> = request.tool.iter().map(|tool| format!("tool:{tool}")).collect();
        let choice = review.choose(&keys, &hash)?;
        if !workplace.configuration.is_unattended() {
            return Err(NotApproved::of("needs_person", self.in_a_terminal(&review, &hash)));
        }
        let by = approver::name();
        let (store, configured) = workplace.acting();
        approve(store, &choice, &configured, approver::by(&by))?;
        Ok(())
    }

    fn in_a_terminal(&self, review: &Review, hash: &ReviewedHash) -> String {
        let id = &review.server.id;
        format!(
            "a person approves this in a terminal: holdpoint review {id}, then holdpoint approve {id} --hash {hash}; \
             `approve.unattended = true` in holdpoint.toml lets the application do it"
        )
    }
}

impl Acts for HomeActs {
    fn review(&mut self, request: &ReviewRequest) -> String {
        self.reviewed(request)
            .unwrap_or_else(|failure| refused(request.id, "not_possible", &failure.to_string()))
    }

    fn approve(&mut self, request: &ApproveRequest) -> String {
        match self.approved(request) {
            Ok(()) => json!({"approved": {"id": request.id}}).to_string(),
            Err(NotApproved { reason, message }) => refused(request.id, reason, &message),
        }
    }
}

fn refused(id: u64, reason: &str, message: &str) -> String {
    json!({"refused": {"id": id, "reason": reason, "message": message}}).to_string()
}

#[derive(Serialize)]
struct ReviewLine<'a> {
    reviewed: Reviewed<'a>,
}

#[derive(Serialize)]
struct Reviewed<'a> {
    id: u64,
    entries: Vec<WaitingEntry<'a>>,
}

/// A waiting entry, with the full approved and current texts, byte for byte.
#[derive(Serialize)]
struct WaitingEntry<'a> {
    #[serde(flatten)]
    document: EntryDocument<'a>,
    hash: Option<String>,
    before: Option<&'a RawValue>,
    after: Option<&'a RawValue>,
}

impl<'a> WaitingEntry<'a> {
    fn of(judgement: &'a Judgement) -> Result<WaitingEntry<'a>, Failure> {
        fn raw(entry: Option<&Entry>) -> Result<Option<&RawValue>, Failure> {
            let text = entry.map(Entry::raw).filter(|text| !text.is_empty());
            text.map(serde_json::from_str).transpose().map_err(Failure::internal)
        }
        Ok(WaitingEntry {
            document: EntryDocument::of(judgement, ServerText::Shown),
            hash: hash_of(judgement).map(|hash| hash.to_string()),
            before: raw(judgement.before.as_ref())?,
            after: raw(judgement.after.as_ref())?,
        })
    }
}

/// Why nothing was approved.
struct NotApproved {
    reason: &'static str,
    message: String,
}

impl NotApproved {
    fn of(reason: &'static str, message: impl std::fmt::Display) -> NotApproved {
        NotApproved { reason, message: message.to_string() }
    }
}

impl From<Failure> for NotApproved {
    fn from(failure: Failure) -> NotApproved {
        NotApproved::of("not_possible", failure)
    }
}

impl From<ActError> for NotApproved {
    fn from(error: ActError) -> NotApproved {
        let reason = match &error {
            ActError::OtherHash { .. } => "other_hash",
            ActError::NothingWaits { .. }
            | ActError::DoesNotWait { .. }
            | ActError::UnknownEntry { .. }
            | ActError::UnknownServer { .. } => "nothing_waits",
            _ => "not_possible",
        };
        NotApproved::of(reason, Failure::from(error))
    }
}
