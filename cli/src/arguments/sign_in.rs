//! What can be typed to sign in to a server, and to sign out.

use clap::Args;
use gate::server::ServerId;
use settings::SecretName;

/// How a server is signed in to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SignInArguments {
    /// Sign in with your browser where the server asks for it; the tokens are kept in the keyring of this system
    #[arg(long, requires = "url")]
    pub(crate) sign_in: bool,
    #[command(flatten)]
    pub(crate) client: SignInClientArguments,
}

/// The client that signs in, where the server does not register one by itself.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SignInClientArguments {
    /// The id of a client that is registered at the authorization server, or the https address of its metadata document
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The client's secret, read from `env:NAME` or `file:PATH`
    #[arg(long, value_name = "SOURCE", requires_all = ["client_id", "issuer"])]
    pub(crate) client_secret: Option<SecretName>,
    /// The only authorization server that the client is used at
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub(crate) issuer: Option<String>,
    /// The port of this machine that the browser comes back to [default: any that is free]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct SignInCommand {
    /// The id of a server that is wired or known, or the address of one
    #[arg(value_name = "ID|URL")]
    pub(crate) server: String,
    /// Also connect to a private or link-local address
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) client: SignInClientArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SignOutCommand {
    /// The id of a server that is signed in to
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) server: Option<ServerId>,
    /// All of them
    #[arg(long, conflicts_with = "server")]
    pub(crate) all: bool,
}
