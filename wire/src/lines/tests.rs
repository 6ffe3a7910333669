use super::*;
use std::collections::VecDeque;

/// An input that comes in the given pieces; a piece may be an error.
struct Pieces(VecDeque<Result<Vec<u8>, io::ErrorKind>>);

impl Pieces {
    fn of(pieces: &[&[u8]]) -> Self {
        Pieces(pieces.iter().map(|piece| Ok(piece.to_vec())).collect())
    }
}

impl Read for Pieces {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        assert!(!room.is_empty(), "a read into no room looks like the end");
        match self.0.pop_front() {
            None => Ok(0),
            Some(Err(kind)) => Err(kind.into()),
            Some(Ok(mut piece)) => {
                let count = piece.len().min(room.len());
                room[..count].copy_from_slice(&piece[..count]);
                if count < piece.len() {
                    self.0.push_front(Ok(piece.split_off(count)));
                }
                Ok(count)
            }
        }
    }
}

/// A line that is owned, so that several can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Owned {
    Frame(Vec<u8>),
    TooLong { beginning: Vec<u8>, end: Vec<u8>, bytes: u64 },
    End(Vec<u8>),
}

fn owned(line: Line<'_>) -> Owned {
    match line {
        Line::Frame(frame) => Owned::Frame(frame.to_vec()),
        Line::TooLong { beginning, end, bytes } => {
            Owned::TooLong { beginning: beginning.to_vec(), end: end.to_vec(), bytes }
        }
        Line::End { unfinished } => Owned::End(unfinished.to_vec()),
    }
}

fn frame(text: &str) -> Owned {
    Owned::Frame(text.as_bytes().to_vec())
}

fn read_all(mut reader: LineReader<impl Read>) -> Vec<Owned> {
    let mut lines = Vec::new();
    loop {
        let line = owned(reader.next_line().unwrap());
        let is_end = matches!(line, Owned::End(_));
        lines.push(line);
        if is_end {
            return lines;
        }
    }
}

fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Owned> {
    read_all(LineReader::new(Pieces::of(pieces), limit))
}

#[test]
fn lines_are_put_together_from_pieces() {
    let read = lines(&[b"on", b"e\ntw", b"o\r", b"\n", b"\n", b"\r\n", b"rest"], 100);
    let expected = [frame("one"), frame("two"), frame(""), frame(""), Owned::End(b"rest".to_vec())];
    assert_eq!(read, expected);
}

#[test]
fn one_carriage_return_before_the_line_feed_is_cut_and_no_other() {
    let read = lines(&[b"a\rb\n\rc\r\r\n"], 100);
    assert_eq!(read, [frame("a\rb"), frame("\rc\r"), Owned::End(Vec::new())]);
}

#[test]
fn the_end_stays_the_end() {
    let mut reader = LineReader::new(Pieces::of(&[b"a\nrest"]), 100);
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"a"));
    assert_eq!(reader.next_line().unwrap(), Line::End { unfinished: b"rest" });
    assert_eq!(reader.next_line().unwrap(), Line::End { unfinished: b"" });
}

fn too_long(line: &[u8]) -> Owned {
    Owned::TooLong {
        beginning: line[..line.len().min(TORN_BYTES)].to_vec(),
        end: line[line.len().saturating_sub(TORN_BYTES)..].to_vec(),
        bytes: u64::try_from(line.len()).unwrap(),
    }
}

#[test]
fn a_line_at_the_limit_is_read_and_one_past_it_is_not() {
    for limit in [1, 5, TORN_BYTES, START_BYTES - 2, START_BYTES, START_BYTES + 1, 300_000] {
        for ending in ["\n", "\r\n"] {
            let fits = vec![b'x'; limit];
            let over = vec![b'x'; limit + 1];
            let input = [&fits, ending.as_bytes(), &over, ending.as_bytes(), b"z\n"].concat();
            let expected =
                [Owned::Frame(fits), too_long(&over), frame("z"), Owned::End(Vec::new())];
            assert!(lines(&[&input], limit) == expected, "{limit} {ending:?}");
            let pieces: Vec<_> = input.chunks(7_919).collect();
            assert!(lines(&pieces, limit) == expected, "{limit} {ending:?}");
        }
    }
}

#[test]
fn of_a_line_over_the_limit_both_ends_are_kept() {
    for length in [101, 102, TORN_BYTES - 1, TORN_BYTES, TORN_BYTES + 1, 3 * TORN_BYTES, 500_000] {
        let line: Vec<u8> =
            (0..length).map(|place| b'a' + u8::try_from(place % 23).unwrap()).collect();
        for (ending, piece) in [("\n", 10), ("\r\n", 1_000), ("\r\n", 1_000_000), ("\n", 5_001)] {
            let input = [&line, ending.as_bytes(), b"ok\n"].concat();
            let pieces: Vec<_> = input.chunks(piece).collect();
            let read = lines(&pieces, 100);
            assert!(read[..2] == [too_long(&line), frame("ok")], "{length} {ending:?} {piece}");
        }
    }
}

#[test]
fn two_lines_over_the_limit_are_not_mixed_up() {
    let (first, second) = (vec![b'a'; 10_000], vec![b'b'; 200]);
    let input = [&first, &b"\n"[..], &second, b"\n"].concat();
    let read = lines(&[&input], 100);
    assert_eq!(read, [too_long(&first), too_long(&second), Owned::End(Vec::new())]);
}

#[test]
fn a_line_over_the_limit_that_never_ends_is_the_beginning_of_nothing() {
    let line = vec![b'x'; 10_000];
    let read = lines(&[&line], 100);
    assert_eq!(read, [Owned::End(line[..TORN_BYTES].to_vec())]);
    let mut reader = LineReader::new(&line[..], 100);
    reader.next_line().unwrap();
    assert_eq!(reader.next_line().unwrap(), Line::End { unfinished: b"" });
}

#[test]
fn a_gigabyte_without_a_line_feed_costs_no_more_memory_than_the_limit() {
    let limit = 1_000_000;
    let mut reader = LineReader::new(io::repeat(b'x').take(1 << 30), limit);
    assert!(matches!(reader.next_line().unwrap(), Line::End { .. }));
    assert_eq!(reader.buffer.len(), limit + 2);
    assert!(reader.torn.beginning.capacity() + reader.torn.end.capacity() <= 8 * TORN_BYTES);
}

#[test]
fn a_read_that_was_interrupted_is_tried_again_and_one_that_fails_loses_nothing() {
    let mut reader = LineReader::new(Pieces::of(&[]), 100);
    reader.input.0 = VecDeque::from([
        Ok(b"a\nbe".to_vec()),
        Err(io::ErrorKind::Interrupted),
        Ok(b"gun ".to_vec()),
        Err(io::ErrorKind::WouldBlock),
        Ok([&[b'x'; 100][..], &[b'y'; 100]].concat()),
        Err(io::ErrorKind::WouldBlock),
        Ok(b"z\nrest".to_vec()),
    ]);
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"a"));
    assert_eq!(reader.next_line().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(reader.next_line().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let line = [&b"begun "[..], &[b'x'; 100], &[b'y'; 100], b"z"].concat();
    assert_eq!(owned(reader.next_line().unwrap()), too_long(&line));
    assert_eq!(reader.next_line().unwrap(), Line::End { unfinished: b"rest" });
}

#[test]
fn a_line_that_was_read_already_is_announced() {
    let mut reader = LineReader::new(Pieces::of(&[b"one\ntwo\nthr", b"ee\n"]), 100);
    assert!(!reader.has_line());
    reader.next_line().unwrap();
    assert!(reader.has_line());
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"two"));
    assert!(!reader.has_line());
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"three"));
}

#[test]
fn the_buffer_grows_with_a_line_and_shrinks_after_it() {
    let large = [&vec![b'x'; 1_000_000][..], b"\n"].concat();
    let mut input = large.clone();
    input.extend(b"small\n".repeat(QUIET_LINES));
    input.extend(b"last\n");
    let mut reader = LineReader::new(&input[..], 1 << 24);
    assert_eq!(reader.buffer.len(), START_BYTES);
    reader.next_line().unwrap();
    assert_eq!(reader.buffer.len(), 1 << 20);
    for _ in 0..QUIET_LINES {
        assert_eq!(reader.next_line().unwrap(), Line::Frame(b"small"));
        assert_eq!(reader.buffer.len(), 1 << 20);
    }
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"last"));
    assert_eq!(reader.buffer.len(), START_BYTES);
}

#[test]
fn a_very_large_buffer_is_given_back_at_once() {
    let mut input = [&vec![b'x'; KEPT_BYTES + 1][..], b"\n"].concat();
    input.extend(b"small\nnext\n");
    let mut reader = LineReader::new(&input[..], 1 << 24);
    reader.next_line().unwrap();
    assert!(reader.buffer.len() > KEPT_BYTES);
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"small"));
    assert_eq!(reader.buffer.len(), START_BYTES);
    assert_eq!(reader.next_line().unwrap(), Line::Frame(b"next"));
    let mut input = [&vec![b'x'; KEPT_BYTES - 1][..], b"\n"].concat();
    input.extend(b"small\n");
    let mut reader = LineReader::new(&input[..], 1 << 24);
    reader.next_line().unwrap();
    reader.next_line().unwrap();
    assert_eq!(reader.buffer.len(), KEPT_BYTES);
}

#[test]
fn any_pieces_give_the_same_lines() {
    let mut input = Vec::new();
    for (number, length) in [0, 1, 10, 99, 100, 101, 102, 5_000, 3, 70_000, 0, 2].iter().enumerate()
    {
        input.extend(vec![b'a' + u8::try_from(number).unwrap(); *length]);
        input.extend(if number % 2 == 0 { &b"\n"[..] } else { b"\r\n" });
    }
    input.extend(b"unfinished");
    for limit in [50, 100, 6_000, 1 << 20] {
        let whole = lines(&[&input], limit);
        for size in [1, 2, 3, 64, 4_095, 65_536] {
            let pieces: Vec<_> = input.chunks(size).collect();
            assert!(lines(&pieces, limit) == whole, "{limit} {size}");
        }
    }
}

#[tokio::test]
async fn a_task_reads_the_same_lines_and_loses_nothing_when_it_gives_up_waiting() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut reader = LineReader::new(reader, 10);
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"be").await.unwrap();
    tokio::select! {
        biased;
        line = reader.next() => panic!("a line came too early: {line:?}"),
        () = std::future::ready(()) => {}
    }
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"fore\r\n0123456789ab\nrest").await.unwrap();
    drop(writer);
    assert_eq!(reader.next().await.unwrap(), Line::Frame(b"before"));
    assert!(matches!(reader.next().await.unwrap(), Line::TooLong { bytes: 12, .. }));
    assert_eq!(reader.next().await.unwrap(), Line::End { unfinished: b"rest" });
}
