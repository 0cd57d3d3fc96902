//! Names that a line of text cannot hold as they are, such as those with line breaks, quotes or separators.
//!
//! A table of somebody else's (Parquet, Arrow) is read by way of lines. A name of it that is not plain is written as a mark, a code
//! point that no text has, and the hexadecimal digits of its UTF-8, and is given back here, character for character.

/// The last code point of Unicode that is nobody's.
const MARK: &[u8] = "\u{10fffd}".as_bytes();

/// The name that stands behind a field; `None` if the field is the name.
pub fn name(field: &[u8]) -> Option<String> {
    let digits = field.strip_prefix(MARK)?;
    let digit = |b: u8| char::from(b).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|&[a, b]| Some(digit(a)? << 4 | digit(b)?)).collect();
    String::from_utf8(bytes?).ok().filter(|_| rest.is_empty())
}

/// Whether a field stands for a name.
pub fn is_marked(field: &[u8]) -> bool {
    field.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_name_comes_back_and_any_other_field_is_its_own() {
        let marked = |digits: &str| name(&[MARK, digits.as_bytes()].concat());
        assert_eq!(marked("610a22"), Some("a\n\"".to_owned()));
        assert_eq!(marked(""), Some(String::new()));
        for no_name in ["6", "6x", "ff"] {
            assert_eq!(marked(no_name), None, "{no_name}");
        }
        assert_eq!(name(b"610a22"), None);
    }
}
