//! The directory's parsers of untrusted data: entries and bundles of a log, paths of tiles,
//! timestamps, registry lists, API and network requests, and the places where claims are published.
//! Each input is parsed unambiguously or refused, and a parsed value is written back as the same
//! bytes.

use contract::time::Timestamp;
use directory::claim::check::{read_file, read_npm_manifest, read_pypi_manifest};
use directory::claim::dns::read_answer;
use directory::claim::{ClaimKey, Place, StartRequest, VerifyRequest, places};
use directory::crawl::official::read_page;
use directory::crawl::package::{read_npm, read_pypi};
use directory::crawl::target::read_targets;
use directory::entry::Entry;
use directory::log::ots::{Attestation, Proof};
use directory::log::tile::{Tile, read_bundle, write_bundle};
use directory::model::Model;
use directory::serve::api::Question;
use directory::serve::http::Method;
use directory::serve::network::Request;
use directory::subject::{decode_segment, encode_segment};

pub fn run(bytes: &[u8]) {
    if let Ok(entry) = Entry::read(bytes) {
        assert_eq!(entry.write().as_deref(), Ok(bytes));
        let mut model = Model::default();
        let _ = model.apply(bytes);
    }
    if let Some((width, rest)) = bytes.split_first()
        && let Some(entries) = read_bundle(rest, u16::from(*width))
    {
        assert_eq!(write_bundle(&entries).as_deref(), Some(rest));
    }
    if let Ok(proof) = Proof::read(bytes) {
        let again = Proof::read(&proof.write()).expect("it was written just now");
        assert_eq!(again.digest, proof.digest);
        assert_eq!(again.write(), proof.write());
        let heights = proof.attestations().into_iter().filter_map(|(_, it)| match it {
            Attestation::Bitcoin(height) => Some(*height),
            Attestation::Pending(_) | Attestation::Unknown(..) => None,
        });
        assert_eq!(heights.min(), proof.bitcoin_height());
    }
    let _ = read_page(bytes);
    for releases in [read_npm(bytes), read_pypi(bytes)].into_iter().flatten() {
        let is_link = |url: &String| url.starts_with("https://");
        assert!(releases.iter().all(|it| it.manifest.repository.as_ref().is_none_or(is_link)));
    }
    claims(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(tile) = Tile::parse(text) {
        assert_eq!(tile.to_string(), text);
    }
    let _ = read_targets(text);
    if let Some(question) = Question::read(text) {
        let told = question.answer(&Model::default(), None, Timestamp(0));
        assert!(told.body.starts_with(b"{"));
    }
    assert_eq!(decode_segment(&encode_segment(text)).as_deref(), Some(text));
    let (path, query) = text.split_once('?').map_or((text, None), |(path, it)| (path, Some(it)));
    for method in [Method::GET, Method::POST] {
        if let Ok(Request::Corpus(bucket) | Request::Reports(bucket)) =
            Request::read(&method, path, query)
        {
            let again = format!("{}/{}", bucket.bits(), bucket.index());
            assert!(path.ends_with(&again), "a bucket is written in one way");
        }
    }
}

/// Resolvers' responses, files and manifests, and claimants' requests.
fn claims(bytes: &[u8]) {
    let _ = read_answer(bytes, 7, "_holdpoint.example.com");
    let _ = (read_file(bytes), read_npm_manifest(bytes), read_pypi_manifest(bytes));
    let _ = serde_json::from_slice::<StartRequest>(bytes);
    let _ = serde_json::from_slice::<VerifyRequest>(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(key) = text.parse::<ClaimKey>() {
        assert_eq!(key.to_string(), text);
    }
    let (id, remote) = text.split_once(' ').map_or((text, None), |(id, url)| (id, Some(url)));
    if let Ok(server) = id.parse() {
        for place in places(&server, remote) {
            let Place::Domain { name, well_known, .. } = place else { continue };
            assert!(!name.is_empty() && well_known.ends_with("/.well-known/holdpoint.json"));
            assert!(well_known.parse::<wire::PlainUrl>().is_ok_and(|url| url.host == name));
        }
    }
}
