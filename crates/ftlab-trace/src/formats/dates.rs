//! Dates with a time of day, as ISO 8601 and most programs write them.
//!
//! `2023-01-05T12:34:56.789Z`: a blank in place of the `T`, a comma in place of the point, and an offset (`+01:00`, `+0100`, `+01`)
//! in place of the `Z` are the same; without any the time is taken as UTC. No leap seconds, as in Unix time.

/// The nanoseconds since 1970 of a date from then to 2500; `None` where the text is no date.
#[cold]
pub fn nanoseconds(text: &[u8]) -> Option<u64> {
    let (date, rest) = text.split_first_chunk::<19>()?;
    let at = |from: usize, digits: usize| number(&date[from..from + digits]);
    let marks = [date[4], date[7], date[13], date[16]];
    if marks != *b"--::" || !matches!(date[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (at(0, 4)?, at(5, 2)?, at(8, 2)?);
    let (hour, minute, second) = (at(11, 2)?, at(14, 2)?, at(17, 2)?);
    let good = (1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !good || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, zone) = match rest.first() {
        Some(b'.' | b',') => {
            let digits = rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
            let (fraction, zone) = rest[1..].split_at(digits);
            let nine: Vec<u8> = fraction.iter().copied().chain([b'0'; 9]).take(9).collect();
            (if digits == 0 { return None } else { number(&nine)? }, zone)
        }
        _ => (0, rest),
    };
    let east = minutes_east(zone)?;
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute;
    let seconds = minutes.checked_add_signed(-east)? * 60 + second;
    Some(seconds * 1_000_000_000 + fraction)
}

/// Days from 1970-01-01 in the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

fn minutes_east(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        b"" | b"Z" | b"z" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [_, _] => (number(digits)?, 0),
        [_, _, b':', _, _] => (number(&digits[..2])?, number(&digits[3..])?),
        [_, _, _, _] => (number(&digits[..2])?, number(&digits[2..])?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then(|| sign * (hours * 60 + minutes) as i64)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, &digit| {
        digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_their_usual_forms() {
        let ns = |text: &str| nanoseconds(text.as_bytes());
        // `date -u -d @1672922096`
        let base = 1_672_922_096_000_000_000;
        for (text, fraction) in [
            ("2023-01-05T12:34:56Z", 0),
            ("2023-01-05 12:34:56", 0),
            ("2023-01-05T12:34:56.5Z", 500_000_000),
            ("2023-01-05T13:34:56,123456789+01:00", 123_456_789),
            ("2023-01-05T11:04:56.000001-0130", 1_000),
            ("2023-01-05t14:34:56+02", 0),
        ] {
            assert_eq!(ns(text), Some(base + fraction), "{text}");
        }
        assert_eq!(ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ns("2000-02-29T00:00:00Z"), Some(951_782_400_000_000_000));
        assert_eq!(ns("2024-12-31T23:59:59Z"), Some(1_735_689_599_000_000_000));
        for bad in [
            "",
            "2023-01-05",
            "2023-13-05T12:34:56",
            "2023-01-05T24:00:00",
            "2023-01-05T12:34:56.",
            "2023-01-05T12:34:56x",
            "1969-12-31T23:59:59",
            "1970-01-01T00:00:00+01:00",
            "2023/01/05 12:34:56",
            "12345678901234567890",
        ] {
            assert_eq!(ns(bad), None, "{bad}");
        }
    }
}
