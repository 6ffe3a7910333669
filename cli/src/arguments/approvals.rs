//! What can be typed after `holdpoint approvals`.

use super::GatewayArguments;
use clap::{Args, Subcommand};
use store::ApprovalId;

#[derive(Debug, Args)]
pub(crate) struct ApprovalsCommand {
    #[command(subcommand)]
    pub(crate) command: ApprovalsSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsSubcommand {
    /// List the calls that wait for you
    #[command(
        after_help = "Example:\n  holdpoint approvals list --gateway https://mcp.example.com --key env:ADMIN_KEY"
    )]
    List(ListApprovals),
    /// Show one call, with its arguments
    #[command(
        after_help = "Example:\n  holdpoint approvals show a1f09c… --gateway https://mcp.example.com --key env:ADMIN_KEY"
    )]
    Show(OneApproval),
    /// Let a call be made, once
    #[command(
        after_help = "Example:\n  holdpoint approvals grant a1f09c… --gateway https://mcp.example.com --key env:ADMIN_KEY\n\nIt counts for this call alone: this caller, this tool as it is now, these arguments. You may not grant your own call."
    )]
    Grant(OneApproval),
    /// Refuse a call
    #[command(
        after_help = "Example:\n  holdpoint approvals refuse a1f09c… --gateway https://mcp.example.com --key env:ADMIN_KEY"
    )]
    Refuse(OneApproval),
}

#[derive(Debug, Args)]
pub(crate) struct ListApprovals {
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}

#[derive(Debug, Args)]
pub(crate) struct OneApproval {
    /// The approval's id, as `approvals list` prints it
    pub(crate) id: ApprovalId,
    #[command(flatten)]
    pub(crate) gateway: GatewayArguments,
}
