//! Installers' records and `package.json` may be any bytes: they identify one archive, or the error
//! says why not. A digest that is found is part of the record.

use attest::{InstallRecord, Manifest, Place, identify};

const MANIFEST: &[u8] = br#"{"name":"@s/mail","version":"1.2.3"}"#;
const PLACES: [&str; 4] = [
    "/p/node_modules/@s/mail/x.js",
    "/p/node_modules/a/node_modules/@s/mail/x.js",
    "/p/node_modules/.pnpm/@s+mail@1.2.3/node_modules/@s/mail/x.js",
    "/p/node_modules/.bun/@s+mail@1.2.3/node_modules/@s/mail/x.js",
];

pub fn run(bytes: &[u8]) {
    let _ = Manifest::parse(bytes);
    if let Ok(path) = std::str::from_utf8(bytes)
        && let Ok(place) = Place::of(path)
    {
        let whole = format!("{}/{}/", place.root(), place.folder());
        assert!(path.starts_with(&whole), "{path}: {whole}");
        assert!(place.folder().ends_with(place.name()));
        assert!(!place.folder().split('/').any(|part| matches!(part, "" | "." | "..")));
    }
    for path in PLACES {
        let place = Place::of(path).expect("a place");
        for record in InstallRecord::ALL {
            let Ok(package) = identify(&place, MANIFEST, &[(record, bytes.to_vec())]) else {
                continue;
            };
            assert_eq!((package.name.as_str(), package.version.as_str()), ("@s/mail", "1.2.3"));
            let text = std::str::from_utf8(bytes).expect("a record is text");
            assert!(text.contains('\\') || text.contains(&package.integrity.to_string()));
        }
    }
}
