//! Bodies, read whole within a limit.

use super::connect::Line;
use hyper::body::{Body, Incoming};

/// What is set aside for a body before any of it came: a length that is only announced costs nothing.
const FIRST_BYTES: usize = 64 * 1024;

/// The whole body, or nothing where it is over the limit.
pub(crate) async fn read(
    line: &mut Line,
    body: &mut Incoming,
    limit: usize,
) -> Result<Option<Vec<u8>>, hyper::Error> {
    read_while(line, body, limit, |_| true).await
}

/// The whole body, or nothing where it is over the limit or where no more than so many bytes may be held.
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
