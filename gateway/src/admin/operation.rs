//! Every operation of the admin API: its method and path, and the permission it needs. The router
//! and the OpenAPI document are built from this table.

use axum::routing::MethodFilter;
use policy::AdminAction;

/// The path prefix of all operations.
pub const ADMIN_PATH: &str = "/admin/v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    ListServers,
    ShowServer,
    Approve,
    Quarantine,
    Release,
    Recheck,
    ListReceipts,
    ShowIncident,
    SetIncident,
    Revoke,
    ReleaseQuarantine,
    ListApprovals,
    GrantCall,
    RefuseCall,
    ShowPrincipalTools,
    ShowInventory,
    ShowStats,
    ShowOpenApi,
}

/// The resource of an operation, as policies see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Gateway,
    /// The server named in the path.
    Server,
    /// Every server that the caller may see; the others are left out.
    EachServer,
    /// The server named in the query, or else the gateway.
    NamedServer,
}

impl Operation {
    pub(super) const ALL: [Operation; 18] = [
        Operation::ListServers,
        Operation::ShowServer,
        Operation::Approve,
        Operation::Quarantine,
        Operation::Release,
        Operation::Recheck,
        Operation::ListReceipts,
        Operation::ShowIncident,
        Operation::SetIncident,
        Operation::Revoke,
        Operation::ReleaseQuarantine,
        Operation::ListApprovals,
        Operation::GrantCall,
        Operation::RefuseCall,
        Operation::ShowPrincipalTools,
        Operation::ShowInventory,
        Operation::ShowStats,
        Operation::ShowOpenApi,
    ];

    pub(super) fn method(self) -> &'static str {
        match self {
            Operation::ListServers
            | Operation::ShowServer
            | Operation::ListReceipts
            | Operation::ShowIncident
            | Operation::ListApprovals
            | Operation::ShowPrincipalTools
            | Operation::ShowInventory
            | Operation::ShowStats
            | Operation::ShowOpenApi => "get",
            Operation::Approve
            | Operation::Quarantine
            | Operation::Release
            | Operation::Recheck
            | Operation::GrantCall
            | Operation::RefuseCall
            | Operation::Revoke
            | Operation::ReleaseQuarantine => "post",
            Operation::SetIncident => "put",
        }
    }

    pub(super) fn filter(self) -> MethodFilter {
        match self.method() {
            "post" => MethodFilter::POST,
            "put" => MethodFilter::PUT,
            _ => MethodFilter::GET,
        }
    }

    /// The path after [`ADMIN_PATH`].
    pub(super) fn path(self) -> &'static str {
        match self {
            Operation::ListServers => "/servers",
            Operation::ShowServer => "/servers/{id}",
            Operation::Approve => "/servers/{id}/approve",
            Operation::Quarantine => "/servers/{id}/quarantine",
            Operation::Release => "/servers/{id}/release",
            Operation::Recheck => "/servers/{id}/recheck",
            Operation::ListReceipts => "/receipts",
            Operation::ShowIncident | Operation::SetIncident => "/incident",
            Operation::Revoke => "/incident/revoke",
            Operation::ReleaseQuarantine => "/incident/release",
            Operation::ListApprovals => "/approvals",
            Operation::GrantCall => "/approvals/{id}/grant",
            Operation::RefuseCall => "/approvals/{id}/refuse",
            Operation::ShowPrincipalTools => "/principals/{sub}/tools",
            Operation::ShowInventory => "/inventory",
            Operation::ShowStats => "/stats",
            Operation::ShowOpenApi => "/openapi.json",
        }
    }

    /// The name in the OpenAPI document and in records.
    pub(super) fn id(self) -> &'static str {
        match self {
            Operation::ListServers => "listServers",
            Operation::ShowServer => "showServer",
            Operation::Approve => "approve",
            Operation::Quarantine => "quarantine",
            Operation::Release => "release",
            Operation::Recheck => "recheck",
            Operation::ListReceipts => "listReceipts",
            Operation::ShowIncident => "showIncident",
            Operation::SetIncident => "setIncident",
            Operation::Revoke => "revoke",
            Operation::ReleaseQuarantine => "releaseQuarantine",
            Operation::ListApprovals => "listApprovals",
            Operation::GrantCall => "grantCall",
            Operation::RefuseCall => "refuseCall",
            Operation::ShowPrincipalTools => "showPrincipalTools",
            Operation::ShowInventory => "showInventory",
            Operation::ShowStats => "showStats",
            Operation::ShowOpenApi => "showOpenApi",
        }
    }

    pub(super) fn action(self) -> AdminAction {
        match self {
            Operation::ListServers
            | Operation::ShowServer
            | Operation::ListReceipts
            | Operation::ShowIncident
            | Operation::ShowPrincipalTools
            | Operation::ShowInventory
            | Operation::ShowStats
            | Operation::ShowOpenApi => AdminAction::Audit,
            Operation::Approve | Operation::Quarantine | Operation::Release => AdminAction::Approve,
            Operation::ListApprovals | Operation::GrantCall | Operation::RefuseCall => {
                AdminAction::Grant
            }
            Operation::Recheck
            | Operation::SetIncident
            | Operation::Revoke
            | Operation::ReleaseQuarantine => AdminAction::Operate,
        }
    }

    pub(super) fn reach(self) -> Reach {
        match self {
            Operation::ListServers
            | Operation::ListApprovals
            | Operation::GrantCall
            | Operation::RefuseCall
            | Operation::ShowInventory
            | Operation::ShowOpenApi => Reach::EachServer,
            Operation::ShowServer
            | Operation::Approve
            | Operation::Quarantine
            | Operation::Release
            | Operation::Recheck => Reach::Server,
            Operation::ListReceipts => Reach::NamedServer,
            Operation::ShowIncident
            | Operation::SetIncident
            | Operation::Revoke
            | Operation::ReleaseQuarantine
            | Operation::ShowPrincipalTools
            | Operation::ShowStats => Reach::Gateway,
        }
    }
}
