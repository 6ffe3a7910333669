//! Reads whole bodies up to a limit.

use super::connect::Line;
use hyper::body::{Body, Incoming};

/// The initial allocation for a body, so that a large announced length alone costs nothing.
const FIRST_BYTES: usize = 64 * 1024;

/// Returns the whole body, or `None` if it exceeds the limit.
pub(crate) async fn read(
    line: &mut Line,
    body: &mut Incoming,
    limit: usize,
) -> Result<Option<Vec<u8>>, hyper::Error> {
    read_while(line, body, limit, |_| true).await
}

/// Returns the whole body, or `None` if it exceeds the limit or `may_hold` refuses to hold more
/// bytes.
pub(crate) async fn read_while(
    line: &mut Line,
    body: &mut Incoming,
    limit: usize,
    mut may_hold: impl FnMut(usize) -> bool,
) -> Result<Option<Vec<u8>>, hyper::Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(announced.min(FIRST_BYTES));
    while let Some(frame) = line.frame(body).await {
        if let Some(data) = frame?.data_ref() {
            let length = bytes.len() + data.len();
            if length > limit || !may_hold(length) {
                return Ok(None);
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(Some(bytes))
}
