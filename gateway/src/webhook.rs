//! Notifies another system of calls that wait for approval. A notification contains no arguments,
//! is signed according to Standard Webhooks, and links to where an approver decides.
//!
//! INVARIANT: neither the receiver's response nor a link decides anything: a person who follows the
//! link has to prove to the admin API that they are an approver.

use crate::approvals::ShownCall;
use crate::resources::Remark;
use crate::sealed::{Purpose, Sealer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::time::Timestamp;
use engine::recorder::now;
use http::{HeaderName, HeaderValue, Method};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::SecretError;
use settings::gateway::{WebhookSettings, WebhookUrl};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use wire::attestation::FetchLimits;
use wire::service::{ServiceAddress, ServiceBody, ServiceRequest};
use zeroize::Zeroizing;

/// The most queued notifications. Further ones count as failed.
const MAX_QUEUED: usize = 1_000;
/// How many notifications are sent at once.
const AT_ONCE: usize = 8;
/// The timeout of the receiver, and the longest response that is read.
const LIMITS: FetchLimits = FetchLimits { bytes: 64 * 1024, patience: Duration::from_secs(10) };
/// The pauses before the retries.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
    Duration::from_secs(120),
];
/// The shortest signing secret.
const MIN_SECRET_BYTES: usize = 16;

/// Why the configured webhook cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadWebhook {
    #[error("`approval.webhook`: {0}")]
    Secret(#[from] SecretError),
    // Never include the address: it often contains a secret.
    #[error("`approval.webhook.url`: {0}")]
    Address(String),
    #[error(
        "`approval.webhook.secret` has less than {MIN_SECRET_BYTES} bytes: make one with `openssl rand -base64 32`"
    )]
    ShortSecret,
}

/// The content of a ticket in a link: which decision on which call, until when.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticket {
    id: String,
    act: String,
    until: i64,
}

/// Whether a ticket was created by this cluster for this decision on this call, and is still valid.
/// It is used up with the call, which can only be decided once.
pub(crate) fn is_ticket_for(sealer: &Sealer, text: &str, id: &str, act: &str) -> bool {
    let opened = sealer.open(Purpose::Approval, text);
    let ticket = opened.and_then(|bytes| serde_json::from_slice::<Ticket>(&bytes).ok());
    ticket.is_some_and(|it| it.id == id && it.act == act && it.until > now().0)
}

/// The queue of notifications to the receiver.
#[derive(Debug)]
pub(crate) struct Webhook {
    queue: mpsc::Sender<Notification>,
    failures: Arc<AtomicU64>,
    sealer: Arc<Sealer>,
    /// The base URL of the admin API for approvers.
    base: String,
}

#[derive(Debug)]
struct Notification {
    id: String,
    expires_at: Timestamp,
    body: Vec<u8>,
}

impl Webhook {
    /// Opens the webhook without contacting the receiver. Tasks on the runtime send notifications
    /// as long as it exists.
    pub(crate) fn open(
        settings: &WebhookSettings,
        public_url: &str,
        sealer: Arc<Sealer>,
        remark: Arc<Remark>,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Webhook, BadWebhook> {
        let variable = |name: &str| std::env::var(name).ok();
        let written = match &settings.url {
            WebhookUrl::Written(url) => url.as_str().to_owned(),
            WebhookUrl::Named(name) => name.read(variable)?,
        };
        let wrong = |problem: String| BadWebhook::Address(problem);
        let url = written.parse().map_err(|error: wire::BadUrl| wrong(error.to_string()))?;
        let authorities = settings.ca.as_ref().map(|ca| ca.read(variable)).transpose()?;
        let authorities = authorities.as_deref().map(str::as_bytes);
        let service = ServiceAddress::new(url, settings.allow_private, authorities)
            .map_err(|error| wrong(error.to_string()))?;
        let key = signing_key(&Zeroizing::new(settings.secret.read(variable)?))?;
        let (queue, waiting) = mpsc::channel(MAX_QUEUED);
        let failures = Arc::new(AtomicU64::new(0));
        let sender = Arc::new(Sender { service, key, failures: failures.clone(), remark });
        runtime.spawn(deliver(sender, waiting));
        let base = settings.decide_at.as_ref().map_or(public_url, |url| url.as_str());
        Ok(Webhook { queue, failures, sealer, base: base.trim_end_matches('/').to_owned() })
    }

    /// Queues a notification of a waiting call. Never blocks.
    pub(crate) fn notify(&self, call: &ShownCall) {
        let notification = self.notification(call);
        if notification.is_none_or(|it| self.queue.try_send(it).is_err()) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of notifications that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn notification(&self, call: &ShownCall) -> Option<Notification> {
        let link = |act: &str| {
            let until = call.expires_at.0;
            let ticket = Ticket { id: call.id.clone(), act: act.to_owned(), until };
            let ticket = serde_json::to_vec(&ticket).ok()?;
            let ticket = self.sealer.seal(Purpose::Approval, &ticket).ok()?;
            let (base, path, id) = (&self.base, crate::ADMIN_PATH, &call.id);
            let url = format!("{base}{path}/approvals/{id}/{act}?ticket={ticket}");
            Some(json!({"method": "POST", "url": url}))
        };
        let body = json!({
            "type": "approval.parked",
            "timestamp": call.parked_at.to_string(),
            "data": {
                "approval_id": call.id,
                "server": call.server,
                "tool": call.tool,
                "principal": call.principal,
                "groups": call.groups,
                "policy_id": call.policy,
                "contract_hash": call.contract,
                "expires_at": call.expires_at.to_string(),
                "show": {"method": "GET", "url": format!("{}{}/approvals", self.base, crate::ADMIN_PATH)},
                "grant": link("grant")?,
                "refuse": link("refuse")?,
            },
        });
        let (id, expires_at) = (call.id.clone(), call.expires_at);
        Some(Notification { id, expires_at, body: body.to_string().into_bytes() })
    }
}

/// The key of a secret: its bytes, or the decoded base64 after `whsec_`.
fn signing_key(secret: &str) -> Result<hmac::Key, BadWebhook> {
    let decoded = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    let bytes = Zeroizing::new(decoded.unwrap_or_else(|| secret.as_bytes().to_vec()));
    match bytes.len() {
        ..MIN_SECRET_BYTES => Err(BadWebhook::ShortSecret),
        _ => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
    }
}

/// The signature of Standard Webhooks: `v1,` and the HMAC-SHA-256 over the id, the time and the
/// body.
fn signature(key: &hmac::Key, id: &str, unix_seconds: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{unix_seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
}

struct Sender {
    service: ServiceAddress,
    key: hmac::Key,
    failures: Arc<AtomicU64>,
    remark: Arc<Remark>,
}

async fn deliver(sender: Arc<Sender>, mut waiting: mpsc::Receiver<Notification>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(notification) = waiting.recv().await {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let sender = sender.clone();
        tokio::spawn(async move {
            sender.send(&notification).await;
            drop(place);
        });
    }
}

impl Sender {
    /// Sends a notification, with retries as long as the call still waits.
    async fn send(&self, notification: &Notification) {
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(problem) = self.try_send(notification).await else { return };
            let pause = pauses.next().filter(|pause| {
                let after = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                now().0.saturating_add(after) < notification.expires_at.0
            });
            let Some(pause) = pause else {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let id = &notification.id;
                (self.remark)(&format!(
                    "the webhook could not be notified of the waiting call {id}: {problem}"
                ));
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_send(&self, notification: &Notification) -> Result<(), String> {
        let Notification { id, body, .. } = notification;
        let at = now().0 / 1_000;
        let header = |name: &'static str, value: &str| {
            let value =
                HeaderValue::from_str(value).map_err(|_| "its headers cannot be written")?;
            Ok::<_, String>((HeaderName::from_static(name), value))
        };
        let headers = vec![
            header("webhook-id", id)?,
            header("webhook-timestamp", &at.to_string())?,
            header("webhook-signature", &signature(&self.key, id, at, body))?,
        ];
        let body = Some(ServiceBody::Json(body.clone()));
        let request = ServiceRequest { method: Method::POST, path: String::new(), headers, body };
        let answered = self.service.send(request, LIMITS).await;
        let (status, _) = answered.map_err(|error| error.to_string())?;
        if status.is_success() { Ok(()) } else { Err(format!("it answered {}", status.as_u16())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        // The example of the specification's reference libraries.
        let key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signature(
            &key,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(matches!(signing_key("fifteen bytes.."), Err(BadWebhook::ShortSecret)));
        assert!(signing_key("sixteen bytes...").is_ok());
    }

    #[test]
    fn a_ticket_is_for_one_decision_on_one_call_until_it_expires() {
        let sealer = Sealer::of(&[7; 32]).unwrap();
        let ticket = |until: i64| {
            let ticket = Ticket { id: "a1".to_owned(), act: "grant".to_owned(), until };
            sealer.seal(Purpose::Approval, &serde_json::to_vec(&ticket).unwrap()).unwrap()
        };
        let good = ticket(now().0 + 60_000);
        assert!(is_ticket_for(&sealer, &good, "a1", "grant"));
        assert!(!is_ticket_for(&sealer, &good, "a1", "refuse"));
        assert!(!is_ticket_for(&sealer, &good, "a2", "grant"));
        assert!(!is_ticket_for(&sealer, &ticket(now().0 - 1), "a1", "grant"));
        assert!(!is_ticket_for(&Sealer::of(&[8; 32]).unwrap(), &good, "a1", "grant"));
    }
}
