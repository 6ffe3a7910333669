//! The admin API: `/admin/v1/…`, JSON over HTTP for the gateway's operators and their programs.
//!
//! INVARIANT: every request is identified for the admin API before its body is read, and every
//! operation is permitted by a policy before it does anything. The table of operations names the
//! action that each operation needs, so that none can lack one.

mod access;
mod approvals;
mod body;
mod incident;
mod ledger;
mod lifecycle;
mod openapi;
mod operation;
mod peers;
mod principals;
mod refusal;
mod servers;

use crate::front::{Identified, Peer};
use crate::identity::Resource;
use crate::node::Node;
use crate::relay::Arrival;
use crate::reply::{self, Reply};
use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::{Extension, RawPathParams, RawQuery};
use axum::response::Response as AxumResponse;
use axum::routing::on;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use operation::Operation;
use policy::Caller;
use refusal::AdminError;
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::ApprovalDecision;
use tower_service::Service;

pub(crate) use access::name_of;
pub use operation::ADMIN_PATH;

/// The largest body of a request.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// A request from an identified caller.
#[derive(Debug, Clone)]
struct AdminVisit {
    node: Arc<Node>,
    caller: Caller,
    arrival: Arrival,
}

/// The content of a request, without its caller.
#[derive(Debug)]
struct AdminInput {
    parameters: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Bytes,
}

impl AdminInput {
    fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// A query parameter; if it is given twice, the first one counts.
    fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn queries<'i>(&'i self, name: &'i str) -> impl Iterator<Item = &'i str> {
        self.query.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A boolean query parameter.
    fn switch(&self, name: &str) -> Result<bool, AdminError> {
        match self.query(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(AdminError::Input(format!("`{name}` is `true` or `false`"))),
        }
    }
}

/// All operations by path and method.
static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let mut router = Router::new();
    for operation in Operation::ALL {
        let handler = move |Extension(visit): Extension<AdminVisit>,
                            parameters: RawPathParams,
                            RawQuery(query): RawQuery,
                            body: Bytes| async move {
            let query = query.unwrap_or_default();
            let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let parameters =
                parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            let input = AdminInput { parameters: parameters.collect(), query, body };
            visit.answer(operation, input).await
        };
        let path = format!("{ADMIN_PATH}{}", operation.path());
        router = router.route(&path, on(operation.filter(), handler));
    }
    router
});

impl Node {
    /// Answers a request to the admin API.
    pub(crate) async fn respond_admin<B>(self: Arc<Self>, parts: Parts, body: B) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.counts.admin_requests.fetch_add(1, Ordering::Relaxed);
        let peer = parts.extensions.get::<Arc<Peer>>().cloned();
        match self.identify(&parts, peer.as_deref(), Resource::Admin).await {
            Ok(identified) => self.respond_admin_to(identified, parts, body).await,
            Err(refused) => unidentified(&refused),
        }
    }

    /// Answers a request to the admin API whose caller was identified, here or by another node.
    pub(crate) async fn respond_admin_to<B>(
        self: Arc<Self>,
        identified: Identified,
        parts: Parts,
        body: B,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = match read_body(&parts.headers, body).await {
            Ok(body) => body,
            Err(error) => return error.reply(),
        };
        let arrival = self.arrival(&parts, &identified);
        let mut request = Request::from_parts(parts, AxumBody::from(body));
        let (caller, node) = (identified.found.caller, self);
        request.extensions_mut().insert(AdminVisit { node, caller, arrival });
        let answered = ROUTER.clone().call(request).await;
        let Ok(response) = answered;
        from_axum(response).await
    }
}

impl AdminVisit {
    async fn answer(self, operation: Operation, input: AdminInput) -> AxumResponse {
        let (node, caller) = (self.node.clone(), self.caller.clone());
        match self.perform(operation, input).await {
            Ok(document) => json(StatusCode::OK, &document),
            Err(error) => {
                if let AdminError::Denied { reason, server } = &error {
                    node.record_denied(&caller, operation, reason, server.as_ref());
                }
                json(error.status(), &error.document())
            }
        }
    }

    async fn perform(self, operation: Operation, input: AdminInput) -> Result<Value, AdminError> {
        let access = self.permit(operation, &input)?;
        match operation {
            Operation::ListServers => self.blocking(move |visit| visit.servers(&access)).await,
            Operation::ShowServer => {
                let id = access.server()?;
                self.blocking(move |visit| visit.server(&id, &input)).await
            }
            Operation::Approve => {
                let id = access.server()?;
                self.blocking(move |visit| visit.approve(&id, &input.body)).await
            }
            Operation::Quarantine => {
                let id = access.server()?;
                self.blocking(move |visit| visit.quarantine(&id)).await
            }
            Operation::Release => self.release(access.server()?).await,
            Operation::Recheck => self.recheck(access.server()?).await,
            Operation::ListReceipts => self.receipts(&access, &input).await,
            Operation::ShowIncident => self.blocking(AdminVisit::incident).await,
            Operation::SetIncident => {
                self.blocking(move |visit| visit.set_incident(&input.body)).await
            }
            Operation::Revoke => self.blocking(move |visit| visit.revoke(&input.body)).await,
            Operation::ReleaseQuarantine => {
                self.blocking(move |visit| visit.release_quarantine(&input.body)).await
            }
            Operation::ListApprovals => self.approvals(access).await,
            Operation::GrantCall | Operation::RefuseCall => {
                let decision = match operation {
                    Operation::GrantCall => {
                        ApprovalDecision::Grant { mfa: self.caller.identity().mfa }
                    }
                    _ => ApprovalDecision::Refuse,
                };
                let id = input.parameter("id").to_owned();
                self.check_ticket(&input, &id, decision)?;
                self.decide_call(access, id, decision).await
            }
            Operation::ShowPrincipalTools => {
                self.blocking(move |visit| visit.principal_tools(&input)).await
            }
            Operation::ShowInventory => self.blocking(move |visit| visit.inventory(&access)).await,
            Operation::ShowStats => Ok(self.node.stats()),
            Operation::ShowOpenApi => {
                Ok(openapi::document(self.node.shared.settings().front.public_url.as_str()))
            }
        }
    }

    /// Runs work that reads or writes the store on a thread that may block.
    async fn blocking(
        self,
        work: impl FnOnce(&AdminVisit) -> Result<Value, AdminError> + Send + 'static,
    ) -> Result<Value, AdminError> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.unwrap_or(Err(AdminError::Internal))
    }
}

/// The refusal of an unidentified request, in this API's format.
fn unidentified(refused: &Reply) -> Reply {
    let mut reply = AdminError::Unidentified(refused.status()).reply();
    if let Some(challenge) = refused.headers().get(WWW_AUTHENTICATE) {
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
    }
    reply
}

async fn read_body<B>(headers: &HeaderMap, body: B) -> Result<Bytes, AdminError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|value| value.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > MAX_BODY_BYTES) {
        return Err(AdminError::TooLarge(MAX_BODY_BYTES));
    }
    let collected = Limited::new(body, MAX_BODY_BYTES).collect();
    match tokio::time::timeout(BODY_PATIENCE, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(AdminError::TooLarge(MAX_BODY_BYTES))
        }
        Ok(Err(_)) => Err(AdminError::Input("the body did not arrive whole".to_owned())),
        Err(_) => Err(AdminError::Slow),
    }
}

fn json(status: StatusCode, document: &Value) -> AxumResponse {
    let mut response = AxumResponse::new(AxumBody::from(document.to_string()));
    *response.status_mut() = status;
    response
}

/// Converts axum's response into the gateway's: JSON that must not be cached.
async fn from_axum(response: AxumResponse) -> Reply {
    let (parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
    };
    match parts.status {
        StatusCode::NOT_FOUND if body.is_empty() => AdminError::NoSuchPath.reply(),
        StatusCode::METHOD_NOT_ALLOWED => AdminError::NoSuchMethod.reply(),
        status => reply::json(status, [body]),
    }
}
