//! Content ids from digests written in hexadecimal.
//!
//! An id stands for the content of 4 KiB (less where the request is smaller). Where the trace has a digest of just these
//! bytes, the id is the digest's first 8 bytes, big-endian; so two readers of one digest agree. Two different digests
//! share an id with a chance of 2^-64.

/// The first 16 hexadecimal digits of a text of any length as a number; `None` where another character is among them, or
/// behind them, or the text is empty.
#[inline]
pub fn id(text: &[u8]) -> Option<u64> {
    if let Some((head, rest)) = text.split_first_chunk::<16>() {
        let id = sixteen(head)?;
        return rest.iter().all(u8::is_ascii_hexdigit).then_some(id);
    }
    if text.is_empty() {
        return None;
    }
    text.iter()
        .try_fold(0u64, |id, &b| Some(id << 4 | u64::from(digit(b)?)))
}

/// Appends the ids of a request's `units` pieces of 4 KiB (the last may be shorter), given all its digests in one text of
/// digests of 32 digits: one for each unit, or one for each of its `sectors` of 512 B, or one for the request as a whole.
/// False when the text is none of these.
#[inline]
pub fn ids(text: &[u8], units: usize, sectors: usize, to: &mut Vec<u64>) -> bool {
    let from = to.len();
    let good = match text.len() {
        32 if units == 1 => id(text).map(|id| to.push(id)).is_some(),
        length if length == units * 32 => text.chunks_exact(32).all(|d| id(d).map(|id| to.push(id)).is_some()),
        length if length == sectors * 32 => text
            .chunks(8 * 32)
            .all(|eight| together(eight).map(|id| to.push(id)).is_some()),
        16..=128 => id(text)
            .map(|id| (0..units as u64).for_each(|unit| to.push(mix(id, unit))))
            .is_some(),
        _ => false,
    };
    if !good {
        to.truncate(from);
    }
    good
}

/// Whether it stands between ids or digests.
#[inline]
pub fn is_between(byte: &u8) -> bool {
    matches!(byte, b'+' | b';')
}

/// Appends the ids in a text that has something between them. False when something else is among them.
#[inline]
pub fn each(text: &[u8], to: &mut Vec<u64>) -> bool {
    text.split(is_between)
        .all(|part| id(part.trim_ascii()).map(|id| to.push(id)).is_some())
}

/// As [`ids`], of digests of any length with something between them: at most one for each unit, or one for each sector.
pub fn ids_apart(text: &[u8], units: usize, sectors: usize, to: &mut Vec<u64>) -> bool {
    let count = text.iter().filter(|byte| is_between(byte)).count() + 1;
    if count <= units {
        return each(text, to);
    }
    if count != sectors {
        return false;
    }
    for (at, digest) in text.split(is_between).enumerate() {
        let before = match at % 8 {
            0 => 0,
            _ => to.pop().unwrap_or(0),
        };
        let Some(id) = with_digest(before, digest.trim_ascii()) else {
            return false;
        };
        to.push(id);
    }
    true
}

/// The id of what came before and one more digest.
fn with_digest(id: u64, digest: &[u8]) -> Option<u64> {
    let (halves, rest) = digest.as_chunks::<16>();
    let id = halves.iter().try_fold(id, |id, half| Some(mix(id, sixteen(half)?)))?;
    match (digest, rest) {
        ([], _) => None,
        (_, []) => Some(id),
        (_, rest) => Some(mix(id, self::id(rest)?)),
    }
}

/// One id for several digests, over all their bytes and their order.
fn together(digests: &[u8]) -> Option<u64> {
    debug_assert!(digests.len().is_multiple_of(16));
    with_digest(0, digests)
}

/// Spreads every bit of both over the result (the finishing steps of MurmurHash3 by Austin Appleby, public domain).
fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b;
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Sixteen digits as a number, eight at a time.
#[inline]
fn sixteen(text: &[u8; 16]) -> Option<u64> {
    let (high, low) = text.split_at(8);
    let half = |text: &[u8]| eight(u64::from_le_bytes(text.try_into().ok()?));
    Some(half(high)? << 32 | half(low)?)
}

/// Eight digits, the first one in the lowest byte.
#[inline]
fn eight(text: u64) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // Byte by byte, without carries as long as all bytes are ASCII: is it at least `low` and below `past`?
    let within = |bytes: u64, low: u8, past: u8| {
        let at_least = bytes + (0x80 - u64::from(low)) * ONES;
        let too_large = bytes + (0x80 - u64::from(past)) * ONES;
        at_least & !too_large & HIGH
    };
    if text & HIGH != 0 {
        return None;
    }
    let letters = within(text | (0x20 * ONES), b'a', b'f' + 1);
    if letters | within(text, b'0', b'9' + 1) != HIGH {
        return None;
    }
    // A letter's low four bits are 1 to 6: nine less than it means.
    let nibbles = (text & (0x0f * ONES)) + (letters >> 7) * 9;
    let pairs = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some((fours << 16 | fours >> 32) & 0xffff_ffff)
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_the_library_reads_them() {
        for value in [0, 1, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, u64::MAX] {
            assert_eq!(id(format!("{value:016x}").as_bytes()), Some(value));
            assert_eq!(id(format!("{value:016X}cafe").as_bytes()), Some(value));
            assert_eq!(id(format!("{value:x}").as_bytes()), Some(value));
        }
        // Every byte in every place of the quick path.
        for at in 0..16 {
            for byte in 0..=255u8 {
                let mut text = *b"0123456789abcdef";
                text[at] = byte;
                let slow = text
                    .iter()
                    .try_fold(0u64, |id, &b| Some(id << 4 | u64::from(digit(b)?)));
                assert_eq!(id(&text), slow, "{byte} at {at}");
            }
        }
        for bad in ["", "x", "0123456789abcdefg", "12 4"] {
            assert_eq!(id(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn digests_per_unit_per_sector_and_of_the_whole() {
        let one = |fill: &str| fill.repeat(32);
        let ids = |text: &str, units, sectors| {
            let mut to = vec![7];
            ids(text.as_bytes(), units, sectors, &mut to).then(|| to.split_off(1))
        };
        assert_eq!(ids(&one("a"), 1, 8), Some(vec![0xaaaa_aaaa_aaaa_aaaa]));
        assert_eq!(ids(&one("1"), 1, 1), Some(vec![0x1111_1111_1111_1111]));
        let two = one("1") + &one("2");
        assert_eq!(
            ids(&two, 2, 16),
            Some(vec![0x1111_1111_1111_1111, 0x2222_2222_2222_2222])
        );
        // Eight digests of one unit: one id, another one when any byte or the order differs.
        let eight = one("1").repeat(7) + &one("2");
        let id = ids(&eight, 1, 8).unwrap();
        assert_eq!(id.len(), 1);
        assert_ne!(Some(id.clone()), ids(&(one("2") + &one("1").repeat(7)), 1, 8));
        assert_ne!(Some(id), ids(&(eight[..255].to_owned() + "3"), 1, 8));
        // Sixteen of two units: two ids.
        let halves = ids(&eight.repeat(2), 2, 16).unwrap();
        assert_eq!((halves.len(), halves[0]), (2, halves[1]));
        // One digest for two units: what is equal as a whole is equal in parts, and the parts differ.
        let whole = ids(&one("5"), 2, 16).unwrap();
        assert_eq!((whole.len(), ids(&one("5"), 2, 16)), (2, Some(whole.clone())));
        assert_ne!(whole[0], whole[1]);
        assert_eq!(ids(&one("g"), 1, 8), None);
        assert_eq!(ids("12", 1, 8), None);
        assert_eq!(ids(&one("1").repeat(5), 1, 8), None);
    }
}
