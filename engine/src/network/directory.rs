//! The client for one directory.

use super::folder::NetworkFolder;
use super::request::NetworkRequest;
use super::sent::SentLog;
use gate::network::{
    Bucket, CorpusBucket, CorpusRow, DriftReport, MAX_ANSWER_BYTES, MessageError, Parameters,
    ReportBucket,
};
use std::fmt;
use std::time::Duration;
use wire::attestation::FetchLimits;
use wire::dialer::{Bearer, Call, DialError, Dialer, PATIENCE};
use wire::service::ServiceBody;
use zeroize::Zeroizing;

/// The directory to use, and the key.
#[derive(Clone)]
pub struct NetworkSettings {
    /// Without a trailing slash.
    pub url: String,
    pub key: Zeroizing<String>,
    pub allow_private: bool,
    pub contribute: bool,
}

impl fmt::Debug for NetworkSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NetworkSettings").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a directory gave no usable response. It counts as a miss.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the directory's answer cannot be used: {0}")]
    Message(#[from] MessageError),
    #[error("nothing was sent: {0}")]
    Unrecorded(std::io::Error),
}

impl DirectoryError {
    /// Whether the directory will never accept this message.
    pub(super) fn is_final(&self) -> bool {
        let status = match self {
            DirectoryError::Dial(error) => error.status().map(|status| status.as_u16()),
            DirectoryError::Message(_) | DirectoryError::Unrecorded(_) => None,
        };
        matches!(status, Some(400 | 409 | 413 | 422))
    }
}

pub struct DirectoryClient {
    settings: NetworkSettings,
    dialer: Dialer,
    patience: Duration,
    sent: SentLog,
}

impl fmt::Debug for DirectoryClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

impl DirectoryClient {
    pub fn new(settings: NetworkSettings, folder: &NetworkFolder) -> DirectoryClient {
        // The pause between requests protects third-party servers; the operator chose this one.
        let dialer = Dialer::new(settings.allow_private, None).with_pause(Duration::ZERO);
        let (patience, sent) = (PATIENCE, SentLog::of(folder));
        DirectoryClient { settings, dialer, patience, sent }.within(PATIENCE)
    }

    /// Shortens the timeout for a response.
    #[must_use]
    pub fn within(self, patience: Duration) -> DirectoryClient {
        let limits = FetchLimits { bytes: MAX_ANSWER_BYTES, patience };
        DirectoryClient { dialer: self.dialer.with_limits(limits), patience, ..self }
    }

    /// The timeout for a response.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub fn url(&self) -> &str {
        &self.settings.url
    }

    pub(super) fn contributes(&self) -> bool {
        self.settings.contribute
    }

    /// The bytes of a request, without sending it. The key is omitted.
    pub fn printed(&self, request: &NetworkRequest) -> Result<String, DirectoryError> {
        let url = self.url_of(request);
        let bytes = self.dialer.printed(&self.call(&url, request))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn url_of(&self, request: &NetworkRequest) -> String {
        format!("{}{}", self.settings.url, request.path())
    }

    fn call<'a>(&'a self, url: &'a str, request: &NetworkRequest) -> Call<'a> {
        Call {
            url,
            accept: Some("application/json"),
            body: request.body().map(ServiceBody::Json),
            bearer: Some(Bearer(&self.settings.key)),
            once: true,
            ..Call::default()
        }
    }

    pub(super) async fn ask(&self, request: &NetworkRequest) -> Result<Vec<u8>, DirectoryError> {
        let url = self.url_of(request);
        let call = self.call(&url, request);
        let (bytes, place) = (self.dialer.printed(&call)?, self.dialer.endpoint(&url)?);
        self.sent
            .note(crate::recorder::now(), &place.host_and_port(), &bytes)
            .map_err(DirectoryError::Unrecorded)?;
        Ok(self.dialer.call(call).await?)
    }

    pub async fn parameters(&self) -> Result<Parameters, DirectoryError> {
        Ok(Parameters::read(&self.ask(&NetworkRequest::Parameters).await?)?)
    }

    pub async fn corpus(&self, bucket: Bucket) -> Result<CorpusBucket, DirectoryError> {
        Ok(CorpusBucket::read(&self.ask(&NetworkRequest::Corpus(bucket)).await?, bucket)?)
    }

    pub async fn reports(&self, bucket: Bucket) -> Result<ReportBucket, DirectoryError> {
        Ok(ReportBucket::read(&self.ask(&NetworkRequest::Reports(bucket)).await?, bucket)?)
    }

    pub async fn contribute(&self, row: CorpusRow) -> Result<(), DirectoryError> {
        self.ask(&NetworkRequest::Contribute(row)).await.map(drop)
    }

    pub async fn report(&self, report: DriftReport) -> Result<(), DirectoryError> {
        self.ask(&NetworkRequest::Report(report)).await.map(drop)
    }
}
