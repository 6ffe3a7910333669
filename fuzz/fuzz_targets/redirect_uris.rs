#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_checks::redirect_uris::run(input));
