//! Sizes as Kubernetes writes them, compared by what they mean: `1Gi` is `1024Mi`.
//!
//! **Invariant**: any text is taken (`nothing_overflows`): what is too large counts as the largest size, what is no quantity
//! equals only itself.

/// Whether both are the same size.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    match (bytes(one), bytes(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// Whether `size` is at least `wanted`.
pub(crate) fn reaches(size: &str, wanted: &str) -> bool {
    match (bytes(size), bytes(wanted)) {
        (Some(size), Some(wanted)) => size >= wanted,
        _ => size == wanted,
    }
}

/// The quantity as a whole number of bytes, rounded up as Kubernetes does.
pub(crate) fn bytes(quantity: &str) -> Option<u128> {
    let quantity = quantity.strip_prefix('+').unwrap_or(quantity);
    let end = quantity
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    // Digits alone fail to parse only where they are too many.
    let digits: u128 = digits.parse().unwrap_or(u128::MAX);
    let (factor, shift) = unit(suffix)?;
    let shift = shift.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let power = 10u128.saturating_pow(shift.unsigned_abs());
    let scaled = digits.saturating_mul(factor);
    Some(match shift < 0 {
        true => scaled.div_ceil(power),
        false => scaled.saturating_mul(power),
    })
}

/// A suffix as a factor and a power of ten.
fn unit(suffix: &str) -> Option<(u128, i32)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(step) = binary.iter().position(|unit| *unit == suffix) {
        return Some((1 << (10 * (step + 1)), 0));
    }
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(step) = decimal.iter().position(|unit| *unit == suffix) {
        return Some((1, 3 * (i32::try_from(step).ok()? - 3)));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared_by_what_they_mean() {
        for (one, other) in [
            ("1Gi", "1024Mi"),
            ("1.5Gi", "1536Mi"),
            ("1G", "1e9"),
            ("1G", "1000M"),
            ("2E", "2000P"),
            ("1E3", "1k"),
            ("+1Ki", "1024"),
            ("1024000m", "1Ki"),
            (".5Ki", "512"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
            assert!(reaches(one, other) && reaches(other, one), "{one} {other}");
        }
        for (large, small) in [("1Gi", "1G"), ("10Gi", "9Gi"), ("1025", "1Ki"), ("1", "0")] {
            assert!(!is_same(large, small), "{large} {small}");
            assert!(reaches(large, small), "{large} {small}");
            assert!(!reaches(small, large), "{large} {small}");
        }
    }

    #[test]
    fn nothing_overflows() {
        assert!(reaches("1e999", "8Ei"));
        assert!(reaches("1", "1e-999"));
        assert!(reaches(&"9".repeat(60), "1Ei"));
        assert!(is_same("1e2147483647", "1e999"));
        assert!(!reaches("0.5e-2147483648", "8Ei"));
        for text in [
            "",
            ".",
            "Gi",
            "1.2.3",
            "-1Gi",
            "1e",
            "1Gib",
            "1e99999999999",
            "ä",
        ] {
            assert_eq!(bytes(text), None, "{text}");
            assert!(is_same(text, text) && !is_same(text, "1Gi") && !reaches(text, "1Gi"));
        }
    }
}
