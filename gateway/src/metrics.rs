//! `/metrics`: the gateway's metrics in the OpenMetrics text format.

use crate::counts::{LatencySnapshot, load};
use crate::node::Node;
use crate::reply::{self, Reply};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

impl Node {
    /// The current metrics.
    pub(crate) fn metrics(&self) -> Reply {
        let mut registry = Registry::with_prefix("holdpoint");
        registry.register_collector(Box::new(Scrape::of(self)));
        let mut text = String::new();
        if encode(&mut text, &registry).is_err() {
            return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let mut reply = reply::json(StatusCode::OK, [Bytes::from(text)]);
        reply.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        reply
    }
}

/// The metrics of one server.
#[derive(Debug)]
pub(crate) struct ServerNumbers {
    pub(crate) id: String,
    pub(crate) links: u64,
    pub(crate) children: u64,
    pub(crate) calls: u64,
    pub(crate) is_breaker_open: bool,
    /// How often its confined processes were stopped from reaching the network.
    pub(crate) egress_blocked: u64,
}

/// All metrics, read at one moment.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) requests: Vec<(&'static str, &'static str, u64)>,
    pub(crate) outcomes: Vec<(&'static str, u64)>,
    pub(crate) ours: LatencySnapshot,
    pub(crate) theirs: LatencySnapshot,
    pub(crate) receipts: u64,
    pub(crate) receipts_failed: u64,
    pub(crate) strangers: u64,
    pub(crate) admin_requests: u64,
    pub(crate) admin_refused: u64,
    /// `None` without a webhook.
    pub(crate) webhook_failures: Option<u64>,
    pub(crate) sessions_begun: u64,
    pub(crate) streams: u64,
    pub(crate) in_flight: u64,
    pub(crate) rechecks: Vec<(&'static str, u64)>,
    /// Calls by the fate of their spans, if spans are exported.
    pub(crate) spans: Vec<(&'static str, u64)>,
    pub(crate) servers: Vec<ServerNumbers>,
    pub(crate) statuses: BTreeMap<&'static str, u64>,
    /// How often sessions tripped a rule, by rule and action.
    pub(crate) anomalies: Vec<(&'static str, &'static str, u64)>,
    pub(crate) is_incident: bool,
    pub(crate) is_egress_blocked: bool,
    pub(crate) quarantined: u64,
    pub(crate) throttled: u64,
    pub(crate) revocations: u64,
    /// Requests that were forwarded to other nodes.
    pub(crate) relayed: u64,
    pub(crate) untold: u64,
}

impl Scrape {
    pub(crate) fn of(node: &Node) -> Scrape {
        let (catalog, counts) = (node.catalog(), &node.counts);
        let servers = catalog.servers.values().map(|known| known.server.numbers()).collect();
        let incident = node.incident.load();
        let anomalies = node.shared.anomalies.as_ref();
        Scrape {
            anomalies: anomalies.map(|known| known.counts().collect()).unwrap_or_default(),
            throttled: anomalies.map_or(0, |known| known.throttled() as u64),
            is_incident: incident.incident.is_some(),
            is_egress_blocked: incident.egress_blocked.is_some(),
            quarantined: incident.quarantines.len() as u64,
            revocations: incident.revocations.len() as u64,
            relayed: node.cluster.as_ref().map_or(0, |cluster| load(&cluster.relayed)),
            untold: node.cluster.as_ref().map_or(0, |cluster| load(&cluster.untold)),
            requests: counts.requests().collect(),
            outcomes: counts.outcomes().collect(),
            ours: counts.ours.snapshot(),
            theirs: counts.theirs.snapshot(),
            receipts: counts.receipts(),
            receipts_failed: counts.receipts_failed(),
            strangers: node.strangers.refused(),
            admin_requests: load(&counts.admin_requests),
            admin_refused: load(&counts.admin_refused),
            webhook_failures: node.shared.approvals.webhook_failures(),
            sessions_begun: node.sessions.begun(),
            streams: node.sessions.open_streams() as u64,
            in_flight: node.flight_count() as u64,
            rechecks: node.rechecks.counts().collect(),
            spans: node.tracer.iter().flat_map(|tracer| tracer.counts().all()).collect(),
            servers,
            statuses: node.statuses(),
        }
    }

    fn held(&self) -> u64 {
        let held = self.requests.iter().filter(|(_, decision, _)| *decision == "held");
        held.map(|(.., count)| count).sum()
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut family =
            encoder.encode_descriptor("requests", REQUESTS, None, MetricType::Counter)?;
        for (method, decision, count) in &self.requests {
            let labels = [("method", *method), ("decision", *decision)];
            counter(family.encode_family(&labels)?, *count)?;
        }
        let mut family =
            encoder.encode_descriptor("outcomes", OUTCOMES, None, MetricType::Counter)?;
        for (status, count) in &self.outcomes {
            counter(family.encode_family(&[("status", *status)])?, *count)?;
        }
        let mut family =
            encoder.encode_descriptor("rechecks", RECHECKS, None, MetricType::Counter)?;
        for (outcome, count) in &self.rechecks {
            counter(family.encode_family(&[("outcome", *outcome)])?, *count)?;
        }
        if !self.spans.is_empty() {
            let mut family =
                encoder.encode_descriptor("traced_calls", SPANS, None, MetricType::Counter)?;
            for (outcome, count) in &self.spans {
                counter(family.encode_family(&[("outcome", *outcome)])?, *count)?;
            }
        }
        if !self.anomalies.is_empty() {
            let mut family =
                encoder.encode_descriptor("anomalies", ANOMALIES, None, MetricType::Counter)?;
            for (rule, action, count) in &self.anomalies {
                let labels = [("rule", *rule), ("action", *action)];
                counter(family.encode_family(&labels)?, *count)?;
            }
        }
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("latency_seconds", LATENCY, None, kind)?;
        for (whose, latency) in [("ours", &self.ours), ("theirs", &self.theirs)] {
            latency.encode(family.encode_family(&[("whose", whose)])?)?;
        }
        for (name, help, count) in [
            ("holds", "Calls that were held for a person", self.held()),
            ("receipts_written", "Decisions that were written to the ledger", self.receipts),
            ("receipts_failed", "Receipts that could not be written", self.receipts_failed),
            ("strangers_refused", "Requests without a valid identity", self.strangers),
            ("sessions_begun", "Sessions that clients began", self.sessions_begun),
            ("peer_requests", "Requests that were forwarded to other nodes", self.relayed),
            ("peer_messages_lost", UNTOLD, self.untold),
            ("admin_requests", "Requests to the admin API", self.admin_requests),
            ("admin_refused", "Requests to the admin API that were denied", self.admin_refused),
        ] {
            let kind = MetricType::Counter;
            counter(encoder.encode_descriptor(name, help, None, kind)?, count)?;
        }
        if let Some(count) = self.webhook_failures {
            let (name, kind) = ("webhook_failures", MetricType::Counter);
            counter(encoder.encode_descriptor(name, WEBHOOK, None, kind)?, count)?;
        }
        for (name, help, count) in [
            ("streams", "Open streams of clients", self.streams),
            ("calls_in_flight", "Calls that servers have not answered yet", self.in_flight),
            ("incident", "1 while an incident is on", self.is_incident.into()),
            ("egress_blocked", "1 while all ways out are closed", self.is_egress_blocked.into()),
            ("quarantined_sessions", "Sessions that a person has to release", self.quarantined),
            ("throttled_sessions", "Sessions that are slowed down on this node", self.throttled),
            ("revocations", "Keys, principals, servers and sessions revoked", self.revocations),
        ] {
            gauge(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?, count)?;
        }
        let mut family =
            encoder.encode_descriptor("servers", "Servers by status", None, MetricType::Gauge)?;
        for (status, count) in &self.statuses {
            gauge(family.encode_family(&[("status", *status)])?, *count)?;
        }
        self.encode_servers(&mut encoder)
    }
}

const REQUESTS: &str = "Requests of callers by method and decision";
const OUTCOMES: &str = "Requests that were passed on, by how they ended";
const SPANS: &str = "Calls by what became of their spans";
const UNTOLD: &str = "Messages of servers that did not reach another node";
const WEBHOOK: &str = "Waiting calls for which the webhook notification failed";
const ANOMALIES: &str = "Sessions that tripped an anomaly rule";
const RECHECKS: &str = "Scheduled rechecks of servers, by outcome";
const LATENCY: &str = "Time a request took in the gateway (ours) and with its server (theirs)";

impl Scrape {
    fn encode_servers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Number = fn(&ServerNumbers) -> u64;
        let numbers: [(&str, &str, Number); 4] = [
            ("links", "Open links of callers to a server", |server| server.links),
            ("children", "Running processes of a server", |server| server.children),
            ("server_calls_in_flight", "Calls that a server has not answered yet", |server| {
                server.calls
            }),
            ("breaker_open", "1 while a server that failed is left alone", |server| {
                u64::from(server.is_breaker_open)
            }),
        ];
        for (name, help, number) in numbers {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for server in &self.servers {
                let labels = [("server", server.id.as_str())];
                gauge(family.encode_family(&labels)?, number(server))?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "egress_blocked",
            "Attempts of a confined server to reach the network that were stopped",
            None,
            MetricType::Counter,
        )?;
        for server in &self.servers {
            let labels = [("server", server.id.as_str())];
            counter(family.encode_family(&labels)?, server.egress_blocked)?;
        }
        Ok(())
    }
}

impl EncodeMetric for LatencySnapshot {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram::<NoLabelSet>(self.sum_seconds, self.count, &self.classes, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn counter(mut encoder: MetricEncoder<'_>, count: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, u64, u64>(&count, None)
}

fn gauge(mut encoder: MetricEncoder<'_>, number: u64) -> fmt::Result {
    encoder.encode_gauge(&number)
}
