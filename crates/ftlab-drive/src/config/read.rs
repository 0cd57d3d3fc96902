//! From text and `--set` options to a [`DriveFile`]: syntax, unknown keys and types, each with its line.

use ftlab_core::{Error, PolicySpec, Result, error};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use toml::{Table, Value};

use super::file::{
    About, BufferTable, DriveFile, FtlTable, GcTable, GeometryTable, HostTable, LifetimeTable, ScheduleTable,
    TimingTable,
};

/// Reads `text` (called `origin` in errors) and applies `sets` (`"ftl.op_ratio=0.15"`) on top of it.
pub fn read(text: &str, origin: &str, sets: &[String]) -> Result<DriveFile> {
    refuse_unknown_keys(text, origin)?;
    let mut table: Table = toml::from_str(text).map_err(|e| refusal(&e, text, origin))?;
    let mut file = typed(&table).map_err(|e| {
        let line = place_of(text, e.path()).map_or(String::new(), |place| format!(" line {}", line_of(text, place)));
        let words = error::in_words(&e.inner().to_string());
        Error::input(format!(
            "{origin}{line}: {}",
            error::of_key(&e.path().to_string(), &words)
        ))
    })?;
    for set in sets {
        apply_set(&mut table, set)?;
        file = typed(&table)
            .map_err(|e| Error::input(format!("--set {set}: {}", error::in_words(&e.inner().to_string()))))?;
    }
    Ok(file)
}

/// By way of JSON, as parameters of policies are read, too: derived for TOML's own readers as well, which each take several forms of a
/// table, these structs were a third of what is compiled here.
fn typed(table: &Table) -> std::result::Result<DriveFile, serde_path_to_error::Error<serde_json::Error>> {
    let tables = table
        .iter()
        .map(|(section, content)| (section.clone(), to_json(content)));
    serde_path_to_error::deserialize(serde_json::Value::Object(tables.collect()))
}

/// What JSON has no form for, dates and what is no finite number, becomes text.
fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) if number.is_finite() => (*number).into(),
        Value::Float(_) | Value::Datetime(_) => value.to_string().into(),
        Value::Boolean(truth) => (*truth).into(),
        Value::Array(values) => values.iter().map(to_json).collect(),
        Value::Table(table) => {
            let values = table.iter().map(|(key, value)| (key.clone(), to_json(value)));
            serde_json::Value::Object(values.collect())
        }
    }
}

/// Where the value of this path begins in the text, or the innermost that has one.
fn place_of(text: &str, path: &serde_path_to_error::Path) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut within = Some(document.get_ref());
    let mut place = None;
    for segment in path {
        let serde_path_to_error::Segment::Map { key } = segment else {
            break;
        };
        let Some((_, value)) = within.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key)) else {
            break;
        };
        place = Some(value.span().start);
        within = value.get_ref().as_table();
    }
    place
}

/// What the syntax of a drive file is refused for: its name, the line, and what was expected.
fn refusal(e: &toml::de::Error, text: &str, origin: &str) -> Error {
    let line = e
        .span()
        .map_or(String::new(), |span| format!(" line {}", line_of(text, span.start)));
    let words = error::in_words_of_toml(e.message(), text, e.span());
    Error::input(format!("{origin}{line}: {words}"))
}

/// Puts one `table.key=value` into `table`. The value is read as a TOML value, or else taken as a string.
///
/// A parameter of a policy may be reached by one more step (`ftl.victim.d=5`). Setting `ftl.op_ratio` takes
/// `ftl.logical_size` away and the reverse, for a drive has one size.
pub fn apply_set(table: &mut Table, set: &str) -> Result<()> {
    let wrong = |why: String| Error::input(format!("--set {set}: {why}"));
    let (path, value) = set
        .split_once('=')
        .ok_or_else(|| wrong("expected table.key=value, such as ftl.op_ratio=0.15".to_owned()))?;
    let steps: Vec<&str> = path.trim().split('.').collect();
    let (section, key, parameter) = match steps[..] {
        [section, key] => (section, key, None),
        [section, key, parameter] => (section, key, Some(parameter)),
        _ => return Err(wrong(format!("`{}` is not of the form table.key", path.trim()))),
    };
    let sections = fields_of::<DriveFile>();
    if !sections.contains(&section) {
        return Err(wrong(error::unknown("table", section, sections).to_string()));
    }
    let keys = keys_of(section);
    if !keys.contains(&key) {
        return Err(wrong(unknown_key(section, key)));
    }
    let value = value.trim();
    let value = match value.parse::<Value>() {
        // Counts may be written 1e3.
        Ok(Value::Float(number)) if value.contains(['e', 'E']) && number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::Integer(number as i64)
        }
        Ok(value) => value,
        Err(_) => Value::String(value.to_owned()),
    };
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(section) = section else {
        return Err(wrong("not a table in this drive file".to_owned()));
    };
    match key {
        "op_ratio" => section.remove("logical_size"),
        "logical_size" => section.remove("op_ratio"),
        _ => None,
    };
    let Some(parameter) = parameter else {
        section.insert(key.to_owned(), value);
        return Ok(());
    };
    let policy = match section.get(key) {
        Some(Value::String(line)) => policy_table(line).map_err(|e| wrong(e.to_string()))?,
        Some(Value::Table(policy)) => policy.clone(),
        _ => return Err(wrong(format!("`{key}` has no parameters; set the policy first"))),
    };
    let mut policy = policy;
    policy.insert(parameter.to_owned(), value);
    section.insert(key.to_owned(), Value::Table(policy));
    Ok(())
}

/// Says of a key that there is none of that name, and what takes the place of one that was there once.
fn unknown_key(section: &str, key: &str) -> String {
    let now = match (section, key) {
        ("gc", "separate_frontier") => "true is survivors = \"shared\", false is survivors = \"stream\"",
        ("gc", "internal_streams") => "true is survivors = \"internal\"",
        _ => return error::unknown(&format!("key in [{section}]"), key, keys_of(section)).to_string(),
    };
    format!("unknown key in [{section}] `{key}`: {now}")
}

/// The keys of one table, in the order of the file.
pub(super) fn keys_of(section: &str) -> &'static [&'static str] {
    match section {
        "drive" => fields_of::<About>(),
        "geometry" => fields_of::<GeometryTable>(),
        "timing" => fields_of::<TimingTable>(),
        "host" => fields_of::<HostTable>(),
        "schedule" => fields_of::<ScheduleTable>(),
        "ftl" => fields_of::<FtlTable>(),
        "gc" => fields_of::<GcTable>(),
        "buffer" => fields_of::<BufferTable>(),
        "lifetime" => fields_of::<LifetimeTable>(),
        _ => &[],
    }
}

/// The tables of a drive file.
pub(super) fn sections() -> &'static [&'static str] {
    fields_of::<DriveFile>()
}

fn policy_table(line: &str) -> Result<Table> {
    let spec = PolicySpec::parse(line)?;
    let mut table = Table::new();
    table.insert("policy".to_owned(), Value::String(spec.name));
    for (key, value) in spec.params {
        table.insert(key, Value::try_from(value).map_err(|e| Error::input(e.to_string()))?);
    }
    Ok(table)
}

fn refuse_unknown_keys(text: &str, origin: &str) -> Result<()> {
    let document = toml::de::DeTable::parse(text).map_err(|e| refusal(&e, text, origin))?;
    let refuse = |what: &str, name: &str, known: &[&str], place: usize| {
        let line = line_of(text, place);
        Error::input(format!("{origin} line {line}: {}", error::unknown(what, name, known)))
    };
    // Tables come sorted by name: report the first wrong key of the text.
    let mut wrong: Vec<(usize, Error)> = Vec::new();
    for (section, content) in document.get_ref() {
        let place = section.span().start;
        let section: &str = section.get_ref();
        if !sections().contains(&section) {
            wrong.push((place, refuse("table", section, sections(), place)));
            continue;
        }
        let toml::de::DeValue::Table(content) = content.get_ref() else {
            wrong.push((
                place,
                Error::input(format!(
                    "{origin} line {}: `{section}` is a table: write [{section}]",
                    line_of(text, place)
                )),
            ));
            continue;
        };
        for (key, _) in content {
            let (key, place): (&str, usize) = (key.get_ref(), key.span().start);
            if !keys_of(section).contains(&key) {
                let line = line_of(text, place);
                let error = format!("{origin} line {line}: {}", unknown_key(section, key));
                wrong.push((place, Error::input(error)));
            }
        }
    }
    match wrong.into_iter().min_by_key(|(place, _)| *place) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// The field names that a derived `Deserialize` asks for: the structs of `file.rs` are the only list of keys.
fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Ask<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Ask<'_> {
        type Error = de::value::Error;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _name: &'static str,
            fields: &'static [&'static str],
            _visitor: V,
        ) -> std::result::Result<V::Value, Self::Error> {
            *self.0 = fields;
            Err(de::Error::custom("only asked for the fields"))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> std::result::Result<V::Value, Self::Error> {
            Err(de::Error::custom("not a struct"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut fields: &'static [&'static str] = &[];
    let _ = T::deserialize(Ask(&mut fields));
    fields
}
