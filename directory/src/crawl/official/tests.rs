use super::*;

/// The form of the registry's responses, according to its documentation.
const PAGE_ONE: &str = r#"{"servers":[
 {"server":{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"io.github.acme/files","title":"Files","description":"Reads files","version":"1.2.0","repository":{"url":"https://github.com/acme/files","source":"github"},
   "packages":[{"registryType":"oci","identifier":"acme/files"},{"registryType":"npm","identifier":"@acme/files","version":"1.2.0","transport":{"type":"stdio"}}]},
  "_meta":{"io.modelcontextprotocol.registry/official":{"status":"active","publishedAt":"2026-01-02T03:04:05.123456Z","isLatest":true}}},
 {"server":{"name":"com.example/weather","description":"Weather","version":"2.0.0","remotes":[{"type":"sse","url":"https://w.example/sse"},{"type":"streamable-http","url":"https://w.example/mcp"}]},
  "_meta":{"io.modelcontextprotocol.registry/official":{"status":"active"}}},
 {"server":{"name":"com.example/gone","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://g.example/mcp"}]},
  "_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted"}}},
 {"server":{"name":"com.example/tenant","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://{tenant}.example/mcp"}]}},
 {"server":{"name":"com.example/path","version":"1.0.0","packages":[{"registryType":"npm","identifier":"../../tmp/evil","version":"1.0.0"},{"registryType":"pypi","identifier":"-r"}]}},
 {"server":{"name":"<script>","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://x.example/mcp"}]}}
],"metadata":{"count":5,"nextCursor":"com.example/tenant:1.0.0"}}"#;

#[test]
fn packages_and_remotes_are_taken_and_deleted_or_unnamable_servers_are_not() {
    let (listed, next) = read_page(PAGE_ONE.as_bytes()).unwrap();
    let ids: Vec<&str> = listed.iter().map(|listed| listed.target.id.as_str()).collect();
    assert_eq!(ids, ["npm:@acme/files", "com.example/weather"]);
    assert_eq!(next.as_deref(), Some("com.example/tenant:1.0.0"));
    let Way::Package(way) = &listed[0].target.way else { panic!() };
    assert_eq!(way.releases, ["1.2.0"]);
    assert_eq!(listed[0].manifest.published_at.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert!(matches!(&listed[1].target.way, Way::Remote { url } if url == "https://w.example/mcp"));
}

#[test]
fn the_last_page_has_no_cursor_and_another_shape_is_an_error() {
    assert_eq!(read_page(br#"{"servers":[]}"#).unwrap(), (Vec::new(), None));
    assert_eq!(read_page(br#"{"servers":[],"metadata":{"nextCursor":""}}"#).unwrap().1, None);
    assert!(read_page(br#"{"items":[]}"#).is_err());
}
