use super::*;
use tokio::io::AsyncWriteExt;

async fn frames(pieces: &[&[u8]], limit: usize) -> Vec<Frame> {
    let (mut writer, reader) = tokio::io::duplex(4);
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let writing = tokio::spawn(async move {
        for piece in pieces {
            writer.write_all(&piece).await.unwrap();
        }
    });
    let mut reader = FrameReader::new(reader, limit);
    let mut out = Vec::new();
    loop {
        let frame = reader.next().await.unwrap();
        let end = matches!(frame, Frame::End { .. });
        out.push(frame);
        if end {
            writing.await.unwrap();
            return out;
        }
    }
}

fn line(text: &str) -> Frame {
    Frame::Line(text.as_bytes().to_vec())
}

#[tokio::test]
async fn lines_are_put_together_from_pieces() {
    let read = frames(&[b"on", b"e\ntw", b"o\r\n", b"\n", b"rest"], 100).await;
    assert_eq!(read, [line("one"), line("two"), line(""), Frame::End { unfinished_bytes: 4 }]);
}

#[tokio::test]
async fn a_carriage_return_inside_a_line_stays() {
    assert_eq!(frames(&[b"a\rb\n"], 100).await[0], line("a\rb"));
}

#[tokio::test]
async fn a_line_at_the_limit_is_read_and_one_past_it_is_not() {
    assert_eq!(frames(&[b"12345\n"], 5).await[0], line("12345"));
    assert_eq!(frames(&[b"12345\r\n"], 5).await[0], line("12345"));
    let too_long = Frame::TooLong { beginning: b"123456".to_vec() };
    assert_eq!(frames(&[b"123456\n"], 5).await[0], too_long);
}

#[tokio::test]
async fn after_a_line_over_the_limit_the_next_one_is_read() {
    let long = [b'x'; 5_000];
    let read = frames(&[&long, b"\nok\n"], 100).await;
    let beginning = vec![b'x'; BEGINNING_BYTES];
    assert_eq!(
        read,
        [Frame::TooLong { beginning }, line("ok"), Frame::End { unfinished_bytes: 0 }]
    );
}

#[tokio::test]
async fn a_line_without_end_costs_no_more_memory_than_the_limit() {
    let (mut writer, reader) = tokio::io::duplex(64 * 1024);
    let writing = tokio::spawn(async move {
        for _ in 0..100 {
            writer.write_all(&[b'x'; 10_000]).await.unwrap();
        }
    });
    let mut reader = FrameReader::new(reader, 1_000);
    assert!(matches!(reader.next().await.unwrap(), Frame::End { .. }));
    writing.await.unwrap();
    assert!(reader.line.capacity() <= 1_001);
}

#[tokio::test]
async fn a_wait_that_was_given_up_loses_nothing() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut reader = FrameReader::new(reader, 100);
    writer.write_all(b"be").await.unwrap();
    tokio::select! {
        biased;
        frame = reader.next() => panic!("a frame came too early: {frame:?}"),
        () = std::future::ready(()) => {}
    }
    writer.write_all(b"fore\n").await.unwrap();
    assert_eq!(reader.next().await.unwrap(), line("before"));
}
