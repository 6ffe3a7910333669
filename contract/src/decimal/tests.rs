use super::*;

fn canonical(spelling: &str) -> String {
    let mut out = Vec::new();
    Decimal::parse(spelling).write_canonical(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn one_value_has_one_spelling() {
    for (spellings, expected) in [
        (&["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000"][..], "1"),
        (&["0", "-0", "0.0", "-0e5", "0e-9"][..], "0"),
        (&["100", "1e2", "1E+2", "10.0e1"][..], "100"),
        (&["-1.50", "-15e-1"][..], "-1.5"),
        (&["1e21", "1000000000000000000000"][..], "1e+21"),
        (&["1e20"][..], "100000000000000000000"),
        (&["0.000001"][..], "0.000001"),
        (&["0.0000001"][..], "1e-7"),
        (&["9007199254740993"][..], "9007199254740993"),
        (&["9007199254740992", "9007199254740992.0"][..], "9007199254740992"),
        (&["18446744073709551616"][..], "18446744073709551616"),
        (&["123456789012345678901234567890"][..], "1.2345678901234567890123456789e+29"),
        (&["333333333.33333329"][..], "333333333.33333329"),
        (&["1e400"][..], "1e+400"),
    ] {
        for spelling in spellings {
            assert_eq!(canonical(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn what_a_doubles_shortest_digits_say_exactly_prints_as_rfc_8785_prints_it() {
    // Appendix B of RFC 8785: the IEEE 754 bit pattern and the expected text.
    for (bits, expected) in [
        (0x0000000000000000_u64, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        assert_eq!(expected.parse::<f64>().unwrap(), f64::from_bits(bits), "{expected}");
        assert_eq!(canonical(expected), expected);
        // Rust also prints the shortest digits of a double, in its own layout.
        let shortest = format!("{:e}", f64::from_bits(bits));
        if shortest.len() < 18 {
            assert_eq!(canonical(&shortest), expected);
        }
    }
}

#[test]
fn order_is_by_exact_value() {
    let sorted =
        ["-1e3", "-2", "-1.5", "0", "1e-9", "0.5", "1", "1.0000000000000000001", "2", "10", "1e3"];
    for pair in sorted.windows(2) {
        let [left, right] = pair else { unreachable!() };
        assert!(Decimal::parse(left) < Decimal::parse(right), "{left} < {right}");
        assert!(Decimal::parse(right) > Decimal::parse(left));
    }
    assert_eq!(Decimal::parse("1e3"), Decimal::parse("1000.0"));
    assert_eq!(Decimal::parse("1e3").to_i128(), Some(1000));
    assert_eq!(Decimal::parse("-17").to_i128(), Some(-17));
    assert_eq!(Decimal::parse("1.5").to_i128(), None);
    assert_eq!(Decimal::parse("1e50").to_i128(), None);
    assert!(Decimal::parse("1e50").is_integer() && !Decimal::parse("1e-1").is_integer());
}

#[test]
fn floors_and_ceilings_are_exact() {
    for (spelling, floor, ceiling) in [
        ("0", Some(0), Some(0)),
        ("7", Some(7), Some(7)),
        ("7.25", Some(7), Some(8)),
        ("-7.25", Some(-8), Some(-7)),
        ("0.5", Some(0), Some(1)),
        ("-0.5", Some(-1), Some(0)),
        ("1e-10000", Some(0), Some(1)),
        ("-1e-10000", Some(-1), Some(0)),
        ("9007199254740993.5", Some(9_007_199_254_740_993), Some(9_007_199_254_740_994)),
        ("100.5e1", Some(1005), Some(1005)),
        ("120.5", Some(120), Some(121)),
        ("1e39", None, None),
        ("-1e10000", None, None),
        ("123456789012345678901234567890123456789012.5", None, None),
    ] {
        let value = Decimal::parse(spelling);
        assert_eq!((value.floor(), value.ceiling()), (floor, ceiling), "{spelling}");
    }
}
