//! A caller whose identity was verified.

/// What kind of caller it is.
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

/// How an identity was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityProof {
    /// A token that an issuer signed.
    Token,
    /// A static key of the gateway's own.
    Key,
    /// A client certificate.
    Certificate,
}

/// A caller as its proof describes it. Two callers are the same principal if issuer and subject are equal; attributes may
/// differ from token to token, and every decision is made on those of the request's own.
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
    /// Whether the caller proved more than one factor.
    pub mfa: bool,
    pub proof: IdentityProof,
}
