use super::*;

#[test]
fn nothing_is_used_before_it_was_checked() {
    assert!(Admittance::Unknown.is_closed());
    assert!(!Admittance::NotAsked.is_closed());
}
