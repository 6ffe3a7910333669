//! A caller whose identity was verified.

/// The kind of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorType {
    User,
    Agent,
    System,
}

impl ActorType {
    pub fn as_str(self) -> &'static str {
        match self {
            ActorType::User => "user",
            ActorType::Agent => "agent",
            ActorType::System => "system",
        }
    }
}

/// How an identity was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityProof {
    /// A token signed by an issuer.
    Token,
    /// A static key configured in the gateway.
    Key,
    /// A client certificate.
    Certificate,
}

/// A caller as described by its credential. Two callers are the same principal if issuer and
/// subject are equal. Attributes may differ between tokens, and every decision uses those of the
/// current request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub issuer: String,
    pub subject: String,
    pub actor_type: ActorType,
    pub client_id: Option<String>,
    pub org: Option<String>,
    /// In ascending order, without repetitions.
    pub groups: Vec<String>,
    pub clearance: Option<String>,
    /// Whether the caller used multi-factor authentication.
    pub mfa: bool,
    pub proof: IdentityProof,
}
