//! Live export end to end: a ledger in memory, collectors on the loopback device.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

mod collector;
mod receiver;
mod scribe;

use collector::{Collector, free_port, wait_for};
use engine::export::{LiveExport, MAX_ANSWER_BYTES, Otlp, Pace, Report, Settings, StartError};
use http::{HeaderMap, HeaderValue};
use ledger::memory::MemoryFolder;
use ledger::record::RulingResult;
use receiver::Receiver;
use scribe::Scribe;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Intervals short enough for a test.
fn pace() -> Pace {
    let ms = Duration::from_millis;
    Pace { poll: ms(20), first_retry: ms(20), longest_retry: ms(100), settle: ms(60) }
}

fn otlp_at(port: u16) -> Settings {
    let otlp = Otlp::new(&format!("http://127.0.0.1:{port}"), HeaderMap::new()).unwrap();
    Settings { otlp: Some(otlp), pace: pace(), ..Settings::default() }
}

fn syslog_at(scheme: &str, port: u16) -> Settings {
    let syslog = format!("{scheme}://localhost:{port}").parse().unwrap();
    Settings { syslog: Some(syslog), pace: pace(), ..Settings::default() }
}

/// The events that were reported.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<Report>>>);

impl Reports {
    fn all(&self) -> Vec<Report> {
        self.0.lock().unwrap().clone()
    }

    fn has(&self, is: impl Fn(&Report) -> bool) -> bool {
        self.all().iter().any(is)
    }
}

fn start(home: &Path, folder: &MemoryFolder, settings: Settings) -> (LiveExport, Reports) {
    let reports = Reports::default();
    let sink = reports.clone();
    let report = move |report| sink.0.lock().unwrap().push(report);
    (LiveExport::start(home, folder.clone(), settings, report).unwrap(), reports)
}

/// The value of an attribute of a log record.
fn attribute<'r>(record: &'r Value, name: &str) -> &'r Value {
    let attributes = record["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(&Value::Null, |attribute| {
        attribute["value"].as_object().unwrap().values().next().unwrap()
    })
}

/// The first two digits of the receipts that arrived, without events.
fn ids(records: &[Value]) -> Vec<String> {
    let id =
        |record: &Value| Some(attribute(record, "holdpoint.receipt_id").as_str()?[..2].to_owned());
    records.iter().filter_map(id).collect()
}

#[test]
fn a_receipt_is_a_log_record_with_all_that_the_ledger_has_and_nothing_else() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Allow);
    scribe.outcome(0x11, 5);
    scribe.decision(0x12, 6, RulingResult::Deny);
    let (export, reports) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| collector.records().len() == 3);
    export.stop();
    let requests = collector.requests();
    assert_eq!(
        (requests[0].path.as_str(), requests[0].content_type.as_str()),
        ("/v1/logs", "application/json")
    );
    let resource = &requests[0].body["resourceLogs"][0]["resource"]["attributes"];
    assert_eq!(resource[0]["key"], "service.name");
    assert_eq!(resource[0]["value"]["stringValue"], "holdpoint");
    let records = collector.records();
    assert_eq!(records[0]["eventName"], "holdpoint.chain.opened");
    let call = &records[1];
    assert_eq!(call["timeUnixNano"], "1700000000001000000");
    assert_eq!(call["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(
        (&call["severityNumber"], &call["eventName"]),
        (&9.into(), &"holdpoint.call".into())
    );
    assert_eq!(attribute(call, "holdpoint.outcome.status"), "success");
    assert_eq!(attribute(call, "holdpoint.latency_us.theirs"), "9000");
    assert_eq!(
        attribute(&records[2], "holdpoint.decision.reason_codes")["values"][0]["stringValue"],
        "contract_drift"
    );
    assert_eq!(records[2]["severityText"], "WARN2");
    // Every value occurs in the ledger's own lines (or says how the two lines were joined).
    let ledger = scribe.text();
    for record in &records {
        for attribute in record["attributes"].as_array().unwrap() {
            let value = attribute["value"].as_object().unwrap().values().next().unwrap();
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            let is_ours = ["holdpoint.record", "holdpoint.state", "holdpoint.chain"]
                .map(Value::from)
                .contains(&attribute["key"]);
            let is_list = value.is_object();
            assert!(
                is_ours || is_list || ledger.contains(&text.replace('"', "\\\"")),
                "{attribute}"
            );
        }
    }
    assert!(
        reports.has(|report| matches!(report, Report::Started { to } if to.contains("127.0.0.1")))
    );
}

#[test]
fn a_collector_that_is_down_loses_nothing() {
    let (home, folder, port) = (tempfile::tempdir().unwrap(), MemoryFolder::default(), free_port());
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Deny);
    let (export, reports) = start(home.path(), &folder, otlp_at(port));
    wait_for(|| reports.has(|report| matches!(report, Report::Trouble { .. })));
    scribe.decision(0x12, 2, RulingResult::Deny);
    let collector = Collector::start(port);
    wait_for(|| ids(&collector.records()).len() == 2);
    assert!(reports.has(|report| matches!(report, Report::Recovered { .. })));
    // The collector goes down in the middle, and is started again.
    drop(collector);
    scribe.decision(0x13, 3, RulingResult::Deny);
    wait_for(|| {
        reports.all().iter().filter(|report| matches!(report, Report::Trouble { .. })).count() == 2
    });
    let collector = Collector::start(port);
    wait_for(|| ids(&collector.records()) == ["13"]);
    export.stop();
}

#[test]
fn a_restart_goes_on_where_it_was_and_joins_what_was_open() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Allow);
    scribe.decision(0x12, 2, RulingResult::Deny);
    let (export, reports) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| reports.has(|report| matches!(report, Report::Sent { .. })));
    export.stop();
    let before = std::fs::read(home.path().join("receipts-export.json")).unwrap();
    scribe.rotate(3);
    scribe.decision(0x13, 4, RulingResult::Deny);
    let (export, _) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| ids(&collector.records()).len() == 2);
    scribe.outcome(0x11, 5);
    wait_for(|| ids(&collector.records()).len() == 3);
    export.stop();
    assert_eq!(ids(&collector.records()), ["12", "13", "11"]);
    let last = collector.records().pop().unwrap();
    assert_eq!(attribute(&last, "holdpoint.state"), "ended");
    // A crash between sending and storing the progress repeats that last batch, and nothing before
    // it.
    std::fs::write(home.path().join("receipts-export.json"), before).unwrap();
    let (export, _) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| ids(&collector.records()).len() == 5);
    export.stop();
    assert_eq!(ids(&collector.records())[3..], ["13", "11"]);
}

#[test]
fn many_receipts_arrive_once_each_in_bounded_batches() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    for number in 0..2_000 {
        scribe.numbered(number, RulingResult::Deny);
    }
    let (export, _) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| ids(&collector.records()).len() == 2_000);
    export.stop();
    let sizes: Vec<usize> =
        collector.requests().iter().map(|request| request.records().len()).collect();
    assert!(sizes.iter().all(|size| *size <= engine::export::MAX_BATCH_ITEMS), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 2_001);
}

#[test]
fn a_collector_that_says_when_is_asked_then() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    Scribe::new(&folder, 1);
    collector.answers(&["HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"]);
    let began = Instant::now();
    let (export, _) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| collector.records().len() == 2);
    assert!(began.elapsed() >= Duration::from_secs(1));
    export.stop();
}

#[test]
fn what_a_collector_will_never_take_is_told_and_does_not_stop_the_rest() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    for id in 1..=9 {
        scribe.decision(id, i64::from(id), RulingResult::Deny);
    }
    collector.refuses("0505050505050505");
    let (export, reports) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| ids(&collector.records()).len() == 8);
    wait_for(|| reports.has(|report| matches!(report, Report::Rejected { count: 1, .. })));
    export.stop();
    let mut arrived = ids(&collector.records());
    arrived.sort();
    assert_eq!(arrived, ["01", "02", "03", "04", "06", "07", "08", "09"]);
}

#[test]
fn what_a_collector_threw_away_is_told_and_not_sent_again() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    Scribe::new(&folder, 1);
    let body = r#"{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    collector.answers(&[&answer]);
    let (export, reports) = start(home.path(), &folder, otlp_at(collector.port()));
    let is_told = |report: &Report| matches!(report, Report::Rejected { count: 1, why, .. } if why == "too old");
    wait_for(|| reports.has(is_told));
    export.stop();
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn an_answer_is_read_up_to_its_bound() {
    let answer = |length: usize| {
        let start = r#"{"partialSuccess":{"rejectedLogRecords":1}}"#;
        let body = format!("{start}{}", " ".repeat(length - start.len()));
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    for (length, is_heard) in [(MAX_ANSWER_BYTES, true), (MAX_ANSWER_BYTES + 1, false)] {
        let (home, folder, collector) =
            (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
        Scribe::new(&folder, 1);
        collector.answers(&[&answer(length)]);
        let (export, reports) = start(home.path(), &folder, otlp_at(collector.port()));
        wait_for(|| reports.has(|report| matches!(report, Report::Sent { .. })));
        export.stop();
        assert_eq!(reports.has(|report| matches!(report, Report::Rejected { .. })), is_heard);
    }
}

#[test]
fn a_header_is_sent_and_never_told() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    Scribe::new(&folder, 1);
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer s3cret"));
    let otlp = Otlp::new(&format!("http://127.0.0.1:{}/base", collector.port()), headers).unwrap();
    let settings = Settings { otlp: Some(otlp), pace: pace(), ..Settings::default() };
    assert!(!format!("{settings:?}").contains("s3cret"));
    let (export, reports) = start(home.path(), &folder, settings);
    wait_for(|| collector.requests().len() == 1);
    export.stop();
    assert_eq!(collector.requests()[0].path, "/base/v1/logs");
    assert_eq!(collector.requests()[0].authorization, "Bearer s3cret");
    assert!(!format!("{:?}", reports.all()).contains("s3cret"));
    for file in std::fs::read_dir(home.path()).unwrap() {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("s3cret"));
    }
}

#[test]
fn nothing_starts_where_it_is_not_wanted() {
    let (home, folder) = (tempfile::tempdir().unwrap(), MemoryFolder::default());
    let outcome = |settings| LiveExport::start(home.path(), folder.clone(), settings, |_| {});
    let refused = outcome(Settings { do_not_track: true, ..otlp_at(1) });
    assert!(matches!(refused, Err(StartError::DoNotTrack)));
    assert!(matches!(outcome(Settings::default()), Err(StartError::NothingConfigured)));
    for (value, expected) in [
        (None, false),
        (Some(""), false),
        (Some("0"), false),
        (Some("1"), true),
        (Some("yes"), true),
    ] {
        assert_eq!(engine::export::do_not_track(value.map(std::ffi::OsStr::new)), expected);
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn one_process_exports_and_the_next_takes_its_place() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Deny);
    let (first, reports) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| reports.has(|report| matches!(report, Report::Sent { .. })));
    let (second, waiting) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| waiting.has(|report| *report == Report::Waiting));
    scribe.decision(0x12, 2, RulingResult::Deny);
    wait_for(|| ids(&collector.records()).len() == 2);
    first.stop();
    scribe.decision(0x13, 3, RulingResult::Deny);
    wait_for(|| ids(&collector.records()).len() == 3);
    second.stop();
    assert_eq!(ids(&collector.records()), ["11", "12", "13"]);
}

#[test]
fn a_full_stop_does_not_wait_for_a_collector_that_hangs() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    Scribe::new(&folder, 1);
    collector.answers(&[""]);
    let (export, _) = start(home.path(), &folder, otlp_at(collector.port()));
    wait_for(|| collector.requests().len() == 1);
    let began = Instant::now();
    export.stop();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn syslog_over_a_stream_survives_a_receiver_that_goes_away() {
    for is_secure in [false, true] {
        let (home, folder) = (tempfile::tempdir().unwrap(), MemoryFolder::default());
        let mut scribe = Scribe::new(&folder, 1);
        scribe.decision(0x11, 1, RulingResult::Deny);
        let receiver = Receiver::start(0, is_secure);
        let (port, identity) = (receiver.port(), receiver.identity());
        let mut settings = syslog_at(if is_secure { "tls" } else { "tcp" }, port);
        settings.trusted.extend(identity.as_ref().map(|identity| identity.certificate.clone()));
        let (export, reports) = start(home.path(), &folder, settings);
        wait_for(|| receiver.messages().len() == 2);
        let message = receiver.messages().pop().unwrap();
        assert!(message.starts_with("<108>1 2023-11-14T22:13:20.001Z "), "{message}");
        assert!(message.contains(" call.deny [holdpoint@32473 receipt_id=\"11111111"), "{message}");
        assert!(message.contains("tool=\"read \\\"file\\\"\\]\""), "{message}");
        drop(receiver);
        scribe.decision(0x12, 2, RulingResult::Deny);
        wait_for(|| reports.has(|report| matches!(report, Report::Trouble { .. })));
        let receiver = Receiver::start_as(port, identity);
        wait_for(|| receiver.messages().iter().any(|message| message.contains("\"12121212")));
        export.stop();
    }
}

#[test]
fn syslog_by_datagrams_keeps_within_its_bound() {
    let (home, folder) = (tempfile::tempdir().unwrap(), MemoryFolder::default());
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Deny);
    scribe.long(0x12, 2);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let port = socket.local_addr().unwrap().port();
    let syslog = format!("udp://127.0.0.1:{port}").parse().unwrap();
    let settings = Settings { syslog: Some(syslog), pace: pace(), ..Settings::default() };
    let (export, _) = start(home.path(), &folder, settings);
    let mut bytes = [0; 65_536];
    let messages: Vec<String> = (0..3)
        .map(|_| {
            let length = socket.recv(&mut bytes).unwrap();
            assert!(length <= engine::export::MAX_DATAGRAM_BYTES);
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        })
        .collect();
    export.stop();
    assert!(messages[1].contains("receipt_id=\"11111111") && !messages[1].contains("cut="));
    assert!(messages[2].contains("receipt_id=\"12121212") && messages[2].contains("cut=\"true\""));
}

#[test]
fn both_collectors_get_everything_and_one_that_is_down_does_not_hold_up_the_other() {
    let (home, folder, collector) =
        (tempfile::tempdir().unwrap(), MemoryFolder::default(), Collector::start(0));
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x11, 1, RulingResult::Deny);
    let port = free_port();
    let settings = Settings { otlp: otlp_at(collector.port()).otlp, ..syslog_at("tcp", port) };
    let (export, reports) = start(home.path(), &folder, settings);
    wait_for(|| ids(&collector.records()) == ["11"]);
    wait_for(|| {
        reports
            .has(|report| matches!(report, Report::Trouble { to, .. } if to.starts_with("syslog")))
    });
    let receiver = Receiver::start(port, false);
    wait_for(|| receiver.messages().len() >= 2);
    export.stop();
}
