//! Launches as JSON, and surfaces that survive a round trip.

use super::{Launch, Observation, ObservationError};
use contract::surface::read_capture;
use gate::time::Timestamp;

#[test]
fn launches_are_the_json_that_is_documented() {
    for text in [
        r#"{"command":["npx","-y","x"],"directory":"/srv","environment_names":["A"],"has_secrets":true}"#,
        r#"{"command":["x"],"environment_names":[],"has_secrets":false}"#,
        r#"{"url":"https://example.com/mcp","header_names":["authorization"],"has_secrets":false}"#,
        r#"{"command":["x"],"environment_names":[],"has_secrets":false,"client_capabilities":"{\"roots\":{}}"}"#,
        r#"{"url":"https://example.com/mcp","header_names":[],"has_secrets":false,"client_capabilities":"{}"}"#,
        r#"{"command":["x"],"environment_names":[],"has_secrets":false,"identity":{"hash":"ab","file":"user"}}"#,
        r#"{"url":"https://example.com/mcp","header_names":[],"has_secrets":false,"identity":{"hash":"ab","file":"project"}}"#,
    ] {
        let launch: Launch = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::json!(launch).to_string(), text);
    }
}

#[test]
fn what_is_neither_a_program_nor_a_url_is_no_launch() {
    for text in [
        "{}",
        "null",
        r#"{"command":"npx"}"#,
        r#"{"url":"x","command":["y"]}"#,
        r#"{"url":"x","other":1}"#,
        r#"{"url":"x","client_capabilities":"[]"}"#,
        r#"{"url":"x","client_capabilities":{}}"#,
    ] {
        assert!(serde_json::from_str::<Launch>(text).is_err(), "{text}");
    }
}

#[test]
fn a_surface_comes_back_from_its_observation() {
    let capture = br#"{"tools":[{"name":"b"},{"name":"a"}],"prompts":[],"resourceTemplates":[{"uriTemplate":"x://{y}"}],
        "serverInfo":{"name":"s","version":"1"},"instructions":"be kind","protocolVersion":"2025-06-18"}"#;
    let surface = read_capture(capture).unwrap();
    assert_eq!(Observation::of(&surface, Timestamp(1)).surface().unwrap(), surface);
    let empty = read_capture(b"{}").unwrap();
    assert_eq!(Observation::of(&empty, Timestamp(1)).surface().unwrap(), empty);
}

#[test]
fn an_observation_that_is_not_what_was_hashed_gives_no_surface() {
    let surface = read_capture(br#"{"tools":[{"name":"a"}]}"#).unwrap();
    let observation = Observation::of(&surface, Timestamp(1));
    let mut edited = observation.clone();
    edited.capture = edited.capture.replace("\"a\"", "\"b\"");
    assert_eq!(edited.surface(), Err(ObservationError::OtherSurface));
    let mut added = observation.clone();
    added.origin = Some("{}".to_owned());
    assert_eq!(added.surface(), Err(ObservationError::OtherSurface));
    let mut broken = observation;
    broken.capture.pop();
    broken.capture.pop();
    assert!(matches!(broken.surface(), Err(ObservationError::Capture(_))));
}
