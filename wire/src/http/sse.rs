//! Parses event streams as the HTML standard specifies, with a limit on the size of an event. Data
//! stays bytes: its reader checks whether it is UTF-8.

use std::time::Duration;

/// An event of the default type, or of type `message`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) data: Vec<u8>,
}

/// An event, or one of its lines, exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// What a line may have in addition to the data: the longest known field name, its colon and a
/// space.
const FIELD_BYTES: usize = 16;

/// How much of an event type is kept, which is enough to tell `message` from other types.
const MAX_TYPE_BYTES: usize = 64;

/// The longest event id that is kept. A stream with a longer one cannot be resumed.
const MAX_ID_BYTES: usize = 1024;

/// Takes a stream in pieces of any size and returns its events.
#[derive(Debug)]
pub(crate) struct EventParser {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event_type: Vec<u8>,
    /// The id of the next event to be completed.
    id: Vec<u8>,
    /// The id of the last completed event; empty if it has none.
    last_id: Vec<u8>,
    retry: Option<Duration>,
    /// The last byte was a carriage return, so a line feed now belongs to it.
    after_return: bool,
    at_start: bool,
}

impl EventParser {
    pub(crate) fn new(limit: usize) -> Self {
        EventParser {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event_type: Vec::new(),
            id: Vec::new(),
            last_id: Vec::new(),
            retry: None,
            after_return: false,
            at_start: true,
        }
    }

    /// Where a new stream resumes after this one: after the last completed event, if that had an
    /// id.
    pub(crate) fn last_id(&self) -> Option<&[u8]> {
        Some(self.last_id.as_slice()).filter(|id| !id.is_empty())
    }

    /// How long the server asks clients to wait before they reconnect.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How many bytes of an unfinished event are held.
    pub(crate) fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Takes the next piece. After an error the stream must not be read further.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<Vec<Event>, EventTooLong> {
        let mut events = Vec::new();
        loop {
            if self.after_return && !piece.is_empty() {
                self.after_return = false;
                piece = piece.strip_prefix(b"\n").unwrap_or(piece);
            }
            let end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, rest) = match end {
                Some(end) => (piece.get(..end), piece.get(end..)),
                None => (Some(piece), None),
            };
            self.extend_line(text.unwrap_or(&[]))?;
            let Some([ending, rest @ ..]) = rest else { return Ok(events) };
            self.after_return = *ending == b'\r';
            self.finish_line(&mut events)?;
            piece = rest;
        }
    }

    fn extend_line(&mut self, text: &[u8]) -> Result<(), EventTooLong> {
        let held = self.line.len() + self.data.len();
        if held + text.len() > self.limit.saturating_add(FIELD_BYTES) {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(text);
        Ok(())
    }

    fn finish_line(&mut self, events: &mut Vec<Event>) -> Result<(), EventTooLong> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let name = line.get(..colon).unwrap_or(line);
        let value = line.get(colon + 1..).unwrap_or(&[]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
                if self.data.len() > self.limit {
                    return Err(EventTooLong);
                }
            }
            b"event" => {
                self.event_type = value.get(..MAX_TYPE_BYTES).unwrap_or(value).to_vec();
            }
            // An id that is too long to send back is dropped: resuming after an older one would
            // repeat events.
            b"id" if value.len() > MAX_ID_BYTES => self.id.clear(),
            b"id" if !value.contains(&0) => self.id = value.to_vec(),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let milliseconds =
                    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
            }
            // Comments and unknown fields.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let data = std::mem::take(&mut self.data);
        let event_type = std::mem::take(&mut self.event_type);
        let has_data = std::mem::take(&mut self.has_data);
        self.last_id.clone_from(&self.id);
        if has_data && !data.is_empty() && matches!(event_type.as_slice(), b"" | b"message") {
            events.push(Event { data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream, parsed as a whole, in single bytes and in pieces of three.
    fn check(stream: &str, expected: &[&str]) {
        for size in [stream.len().max(1), 1, 3] {
            let mut parser = EventParser::new(1_000);
            let mut events = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                events.extend(parser.push(piece).unwrap());
            }
            let texts: Vec<_> =
                events.iter().map(|event| String::from_utf8_lossy(&event.data)).collect();
            assert_eq!(texts, expected, "{stream:?} in pieces of {size}");
        }
    }

    #[test]
    fn events_end_with_an_empty_line_of_any_ending() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\n\r\n", &["a", "b"]);
    }

    #[test]
    fn data_of_several_lines_is_joined() {
        check("data: {\ndata:  \"a\":\ndata:1}\n\n", &["{\n \"a\":\n1}"]);
        check("data: a\ndata\ndata: b\n\n", &["a\n\nb"]);
    }

    #[test]
    fn comments_ids_and_unknown_fields_are_passed_over() {
        check(": hello\n\nid: 1\nretry: 10\nother: x\nevent: message\ndata: a\n\n", &["a"]);
    }

    #[test]
    fn events_of_another_type_are_passed_over() {
        check("event: endpoint\ndata: /messages\n\ndata: a\n\n", &["a"]);
        check("event: message \ndata: a\n\n", &[]);
    }

    #[test]
    fn events_without_data_are_none() {
        check("id: priming\ndata:\n\nevent: message\n\n\n\n", &[]);
    }

    #[test]
    fn an_unfinished_event_is_none() {
        check("data: a\n\ndata: b\n", &["a"]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
    }

    #[test]
    fn an_event_at_the_limit_is_read_and_one_past_it_is_not() {
        let at = format!("data: {}\n\n", "x".repeat(10));
        assert_eq!(EventParser::new(10).push(at.as_bytes()).unwrap().len(), 1);
        let past = format!("data: {}\n\n", "x".repeat(11));
        assert_eq!(EventParser::new(10).push(past.as_bytes()), Err(EventTooLong));
        let lines = "data: 12345\ndata: 12345\n\n";
        assert_eq!(EventParser::new(10).push(lines.as_bytes()), Err(EventTooLong));
        assert_eq!(EventParser::new(11).push(lines.as_bytes()).unwrap().len(), 1);
    }

    /// The last id and the retry time in milliseconds after a stream.
    fn place(stream: &str) -> (String, Option<u128>) {
        let mut parser = EventParser::new(10_000);
        parser.push(stream.as_bytes()).unwrap();
        let id = String::from_utf8_lossy(parser.last_id().unwrap_or_default()).into_owned();
        (id, parser.retry().map(|retry| retry.as_millis()))
    }

    #[test]
    fn the_last_id_is_that_of_a_finished_event_with_or_without_data() {
        assert_eq!(place("data: a\n\n"), (String::new(), None));
        assert_eq!(place("id: 1\nretry: 50\ndata:\n\n"), ("1".to_owned(), Some(50)));
        assert_eq!(place("id: 1\ndata: a\n\ndata: b\n\n").0, "1");
        assert_eq!(place("id: 1\ndata: a\n\nid: 2\ndata: b\n").0, "1");
        assert_eq!(place("id: 1\ndata: a\n\nid\ndata: b\n\n").0, "");
        assert_eq!(place("id: 1\ndata: a\n\nid: \0\ndata: b\n\n").0, "1");
        assert_eq!(place("retry: 5\nretry: x\nretry: -1\nretry: 5.5\n").1, Some(5));
        assert_eq!(place("retry: 5\nretry: 99999999999999999999\n").1, Some(5));
    }

    #[test]
    fn an_id_at_the_limit_is_taken_over_and_one_past_it_is_none() {
        let at = "x".repeat(MAX_ID_BYTES);
        assert_eq!(place(&format!("id: 1\n\nid: {at}\n\n")).0, at);
        assert_eq!(place(&format!("id: 1\n\nid: {at}x\n\n")).0, "");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut parser = EventParser::new(10);
        let fed = std::iter::repeat_n(b"xxxxxxxx", 10).map(|piece| parser.push(piece));
        assert_eq!(fed.filter(Result::is_err).count(), 7);
        assert!(parser.held() <= 10 + FIELD_BYTES);
    }
}
