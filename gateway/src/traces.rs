//! Spans of calls, sent to an OpenTelemetry collector if the configuration names one: the gateway's
//! work on a request (`front`), the decision (`decision`), and the server's part (`upstream`).
//!
//! A call never waits for a span: the queue is bounded, and spans that do not fit are counted and
//! dropped. Attributes only hold names that are also in receipts, never arguments, results, tokens
//! or headers.

use crate::counts::METHODS;
use engine::export::{Otlp, OtlpSender};
use gate::server::ServerId;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// The most calls whose spans are queued. Further ones are dropped.
const QUEUE: usize = 4_096;
/// The most calls per request to the collector.
const BATCH: usize = 256;
/// How long a partial batch waits.
const PAUSE: Duration = Duration::from_secs(1);
/// How many characters of a tool's name are sent.
const MAX_NAME: usize = 64;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Exports spans.
#[derive(Debug)]
pub(crate) struct Tracer {
    queue: mpsc::Sender<Ended>,
    counts: Arc<SpanCounts>,
}

/// Calls by the fate of their spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    exported: AtomicU64,
    /// The queue was full.
    dropped: AtomicU64,
    /// The collector rejected them.
    failed: AtomicU64,
}

impl SpanCounts {
    pub(crate) fn all(&self) -> [(&'static str, u64); 3] {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("exported", load(&self.exported)),
            ("dropped", load(&self.dropped)),
            ("failed", load(&self.failed)),
        ]
    }
}

impl Tracer {
    /// Starts to export to a collector, on this runtime.
    pub(crate) fn start(otlp: Otlp, runtime: &tokio::runtime::Handle) -> std::io::Result<Tracer> {
        let sender = OtlpSender::new(otlp)?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        let counts = Arc::new(SpanCounts::default());
        runtime.spawn(export(sender, waiting, counts.clone()));
        Ok(Tracer { queue, counts })
    }

    pub(crate) fn counts(&self) -> &SpanCounts {
        &self.counts
    }

    /// Starts the spans of a request, in the caller's trace or a new one. Returns `None` if the
    /// caller marked the trace as not sampled.
    pub(crate) fn begin(self: &Arc<Self>, headers: &HeaderMap, begun: Instant) -> Option<CallSpan> {
        let parent = match crate::front::header(headers, TRACE_PARENT.as_str()) {
            Some(text) => {
                crate::front::trace_id(headers)?;
                Parent::read(text).filter(|parent| parent.is_sampled)?
            }
            None => Parent { trace: random()?, span: None, is_sampled: true },
        };
        let begun_at = SystemTime::now().checked_sub(begun.elapsed())?;
        Some(CallSpan {
            tracer: self.clone(),
            begun,
            call: Some(Ended {
                trace: parent.trace,
                parent: parent.span,
                ids: [random()?, random()?, random()?],
                begun_at,
                method: "other",
                server: None,
                tool: None,
                decided: None,
                answered: None,
                took: Duration::ZERO,
            })
            .into(),
        })
    }
}

/// The content of `traceparent`.
struct Parent {
    trace: [u8; 16],
    span: Option<[u8; 8]>,
    is_sampled: bool,
}

impl Parent {
    fn read(text: &str) -> Option<Parent> {
        let mut parts = text.split('-');
        let (_, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let mut parent = Parent { trace: [0; 16], span: None, is_sampled: false };
        hex::decode_to_slice(trace, &mut parent.trace).ok()?;
        let mut id = [0; 8];
        hex::decode_to_slice(span, &mut id).ok()?;
        parent.span = Some(id);
        parent.is_sampled = u8::from_str_radix(flags.get(..2)?, 16).ok()? & 1 == 1;
        Some(parent)
    }
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

/// The spans of one request; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct CallSpan {
    tracer: Arc<Tracer>,
    begun: Instant,
    call: Mutex<Option<Ended>>,
}

impl CallSpan {
    fn note(&self, change: impl FnOnce(&mut Ended, Duration)) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = call.as_mut() {
            change(call, self.begun.elapsed());
        }
    }

    /// Sets the method. Unknown methods, which callers can make up, are recorded as `other`.
    pub(crate) fn asks(&self, method: &str) {
        let known = METHODS.into_iter().find(|known| *known == method);
        self.note(|call, _| call.method = known.unwrap_or("other"));
    }

    /// Sets the server and tool.
    pub(crate) fn goes_to(&self, server: &ServerId, tool: Option<&str>) {
        let tool = tool.map(|tool| tool.chars().take(MAX_NAME).collect());
        self.note(|call, _| {
            call.server = Some(server.clone());
            call.tool = tool;
        });
    }

    /// Marks the end of the decision.
    pub(crate) fn decided(&self) {
        self.note(|call, now| call.decided = Some(now));
    }

    /// Marks the end of the server's part.
    pub(crate) fn answered(&self) {
        self.note(|call, now| call.answered = Some(now));
    }

    /// The trace id as in receipts.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        call.as_ref().map(|call| hex::encode(call.trace))
    }

    /// Adds the server's part to the forwarded headers, so that the server's spans are its
    /// children.
    pub(crate) fn join(&self, headers: &mut Vec<(HeaderName, HeaderValue)>) {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Ended { trace, ids: [.., upstream], .. }) = call.as_ref() else { return };
        let parent = format!("00-{}-{}-01", hex::encode(trace), hex::encode(upstream));
        let Ok(parent) = HeaderValue::from_str(&parent) else { return };
        headers.retain(|(name, _)| *name != TRACE_PARENT);
        headers.push((TRACE_PARENT, parent));
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        let call = self.call.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(call) = call else { return };
        if self.tracer.queue.try_send(Ended { took, ..call }).is_err() {
            self.tracer.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A request whose spans have ended.
#[derive(Debug)]
struct Ended {
    trace: [u8; 16],
    parent: Option<[u8; 8]>,
    /// The span ids of the front, the decision and the server's part.
    ids: [[u8; 8]; 3],
    begun_at: SystemTime,
    method: &'static str,
    server: Option<ServerId>,
    tool: Option<String>,
    decided: Option<Duration>,
    answered: Option<Duration>,
    took: Duration,
}

impl Ended {
    /// The spans as OTLP JSON.
    fn spans(&self) -> Vec<Value> {
        let [front, decision, upstream] = &self.ids;
        let begun = self.begun_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut attributes = vec![attribute("mcp.method.name", self.method)];
        if let Some(server) = &self.server {
            attributes.push(attribute("holdpoint.server", server.as_str()));
        }
        if let Some(tool) = &self.tool {
            attributes.push(attribute("gen_ai.tool.name", tool));
        }
        let span = |id: &[u8; 8], parent: Option<&[u8; 8]>, name: &str, kind: u8, from, to| {
            json!({
                "traceId": hex::encode(self.trace),
                "spanId": hex::encode(id),
                "parentSpanId": parent.map(hex::encode).unwrap_or_default(),
                "name": name,
                "kind": kind,
                "startTimeUnixNano": nanoseconds(begun + from),
                "endTimeUnixNano": nanoseconds(begun + to),
                "attributes": attributes,
            })
        };
        // Span kinds: 1 is internal, 2 server, 3 client.
        let whole = format!("front {}", self.method);
        let mut spans =
            vec![span(front, self.parent.as_ref(), &whole, 2, Duration::ZERO, self.took)];
        if let Some(decided) = self.decided {
            spans.push(span(decision, Some(front), "decision", 1, Duration::ZERO, decided));
            let answered = self.answered.unwrap_or(self.took);
            spans.push(span(upstream, Some(front), "upstream", 3, decided, answered));
        }
        spans
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Protobuf's JSON encodes 64-bit integers as strings.
fn nanoseconds(since: Duration) -> String {
    since.as_nanos().to_string()
}

fn body(calls: &[Ended]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let spans: Vec<Value> = calls.iter().flat_map(Ended::spans).collect();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", "holdpoint-gateway"),
            attribute("service.version", version),
        ]},
        "scopeSpans": [{"scope": {"name": "holdpoint.gateway", "version": version}, "spans": spans}],
    }]});
    body.to_string().into_bytes()
}

/// Exports ended spans in batches until the gateway shuts down. What a collector rejects is counted
/// and not sent again.
async fn export(sender: OtlpSender, mut waiting: mpsc::Receiver<Ended>, counts: Arc<SpanCounts>) {
    let mut calls = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut calls, BATCH).await > 0 {
        let deadline = tokio::time::Instant::now() + PAUSE;
        while calls.len() < BATCH {
            let room = BATCH - calls.len();
            match tokio::time::timeout_at(deadline, waiting.recv_many(&mut calls, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        let count = match sender.post(body(&calls)).await {
            Ok(()) => &counts.exported,
            Err(_) => &counts.failed,
        };
        count.fetch_add(calls.len() as u64, Ordering::Relaxed);
        calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_goes_on_where_its_caller_records_it() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let read = |text: &str| Parent::read(text).map(|parent| parent.is_sampled);
        assert_eq!(read(&format!("00-{id}-00f067aa0ba902b7-01")), Some(true));
        assert_eq!(read(&format!("00-{id}-00f067aa0ba902b7-00")), Some(false));
        assert_eq!(read("00-x-00f067aa0ba902b7-01"), None);
        assert_eq!(read(""), None);
    }

    #[tokio::test]
    async fn spans_past_the_queue_are_dropped_and_counted() {
        let (queue, mut waiting) = mpsc::channel(2);
        let tracer = Arc::new(Tracer { queue, counts: Arc::default() });
        for _ in 0..3 {
            drop(tracer.begin(&HeaderMap::new(), Instant::now()).unwrap());
        }
        assert_eq!(tracer.counts().all(), [("exported", 0), ("dropped", 1), ("failed", 0)]);
        waiting.recv().await.unwrap();
        drop(tracer.begin(&HeaderMap::new(), Instant::now()).unwrap());
        assert_eq!(tracer.counts().all()[1], ("dropped", 1));
    }
}
