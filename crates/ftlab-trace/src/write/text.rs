//! Numbers as text, without the formatting machinery: writers live from this.

/// Appends a whole number.
#[inline]
pub fn number(out: &mut Vec<u8>, value: u64) {
    // Two digits at a time, from the back.
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[0; 2]; 100];
        let mut i = 0;
        while i < 100 {
            pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
            i += 1;
        }
        pairs
    };
    let (mut digits, mut at, mut left) = ([0u8; 20], 20, value);
    while left >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(left % 100) as usize]);
        left /= 100;
    }
    if left >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[left as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + left as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` / 10^`digits` with exactly that many digits behind the point.
#[inline]
pub fn fixed(out: &mut Vec<u8>, value: u64, digits: u32) {
    let unit = 10u64.pow(digits);
    number(out, value / unit);
    if digits > 0 {
        let from = out.len();
        // A leading 1 keeps the zeros; it becomes the point.
        number(out, unit + value % unit);
        out[from] = b'.';
    }
}

/// Appends hexadecimal digits in lower case without zeros in front.
#[inline]
pub fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    hexadecimals(out, value, (64 - value.leading_zeros()).div_ceil(4).max(1));
}

/// Appends the lowest hexadecimal digits, so many.
#[inline]
fn hexadecimals(out: &mut Vec<u8>, value: u64, digits: u32) {
    for i in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * i) & 15) as usize]);
    }
}

/// Appends a number with blanks in front, `width` characters wide if it is no longer.
#[inline]
pub fn padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let from = out.len();
    number(out, value);
    align_right(out, from, width);
}

/// Puts blanks in front of what was appended since `from`, until it is `width` characters wide.
#[inline]
pub fn align_right(out: &mut Vec<u8>, from: usize, width: usize) {
    let missing = width.saturating_sub(out.len() - from);
    if missing > 0 {
        out.resize(out.len() + missing, b' ');
        out[from..].rotate_right(missing);
    }
}

/// Appends a digest of 32 hexadecimal digits that begins with the content id.
#[inline]
pub fn digest(out: &mut Vec<u8>, id: u64) {
    hexadecimals(out, id, 16);
    out.extend_from_slice(&[b'0'; 16]);
}

/// The number that a volume was spelled with.
pub fn value(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut values = vec![0, 9, 10, 99, 100, 101, 65535, u64::MAX];
        values.extend((0..20).map(|i| 10u64.pow(i)));
        values.extend((1..20).map(|i| 10u64.pow(i) - 1));
        for value in values {
            let text = |write: &dyn Fn(&mut Vec<u8>)| {
                let mut out = Vec::new();
                write(&mut out);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(text(&|out| number(out, value)), value.to_string());
            assert_eq!(text(&|out| hexadecimal(out, value)), format!("{value:x}"));
            let (whole, rest) = (value / 1_000_000, value % 1_000_000);
            assert_eq!(text(&|out| fixed(out, value, 6)), format!("{whole}.{rest:06}"));
            assert_eq!(text(&|out| fixed(out, value, 0)), value.to_string());
            assert_eq!(text(&|out| padded(out, value, 7)), format!("{value:7}"));
        }
    }
}
