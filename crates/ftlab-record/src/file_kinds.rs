//! What a file is, by its path alone: its kind (`*.sst`), what files of that name are for, and patterns that name files.

/// What files are for whose names fit; the first that fits counts. A pattern with a `/` is about the whole path.
///
/// The names are those of the programs' own documentation: SQLite (Temporary Files Used By SQLite), RocksDB and LevelDB (file
/// layout), PostgreSQL (Database File Layout), MariaDB (InnoDB and Aria files), Redis (persistence), LMDB, WiredTiger, GCC.
const ROLES: &[(&str, &str)] = &[
    ("*-journal", "journal"),
    ("*-wal", "write-ahead log"),
    ("*-shm", "index of the write-ahead log"),
    ("etilqs_*", "temporary"),
    ("*.db", "main database"),
    ("*.db3", "main database"),
    ("*.sqlite", "main database"),
    ("*.sqlite3", "main database"),
    ("*.mdb", "main database"),
    ("*.duckdb", "main database"),
    ("*.sst", "table"),
    ("*.ldb", "table"),
    ("MANIFEST-*", "manifest"),
    ("OPTIONS-*", "options"),
    ("*/pg_wal/*", "write-ahead log"),
    ("*/pg_xact/*", "commit log"),
    ("*/base/*/*", "table or index"),
    ("*/global/*", "shared catalogue"),
    ("*.ibd", "table"),
    ("ibdata*", "main database"),
    ("ib_logfile*", "write-ahead log"),
    ("aria_log*", "log"),
    ("*.wt", "table"),
    ("*.rdb", "snapshot"),
    ("*.aof", "append-only log"),
    ("*.wal", "write-ahead log"),
    ("*.log", "log"),
    ("*.o", "object"),
    ("*.a", "archive"),
    ("*.s", "assembly"),
    ("*.tmp", "temporary"),
];

/// The path without what the kernel adds to those of removed files.
fn name_of(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `*.sst` for a name with an ending that has letters; else the name, with `#` for numbers: `MANIFEST-#`. A name of 16 hexadecimal
/// digits or more is a number.
pub fn kind_of(path: &str) -> String {
    let name = last_part(name_of(path));
    let ending = name
        .rsplit_once('.')
        .filter(|(stem, _)| !stem.is_empty())
        .map(|(_, ending)| ending);
    if let Some(ending) = ending.filter(|e| (1..=16).contains(&e.len()) && e.chars().any(|c| c.is_ascii_alphabetic())) {
        return format!("*.{ending}");
    }
    // A digest is a number as well: git names objects by theirs, PostgreSQL log segments by long hexadecimal numbers.
    if name.len() >= 16 && name.bytes().all(|b| b.is_ascii_hexdigit()) {
        return "#".to_owned();
    }
    let mut kind = String::new();
    for c in name.chars().take(64) {
        match c.is_ascii_digit() {
            false => kind.push(c),
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
        }
    }
    kind
}

/// What a file of this name is for, where that is known: `journal`, `table`, `object`.
pub fn role_of(path: &str) -> Option<&'static str> {
    let path = name_of(path);
    let known = ROLES.iter().find(|(pattern, _)| fits(pattern, path));
    known.map(|(_, role)| *role)
}

/// Whether a path fits a pattern in which `*` stands for anything. One without a `/` is about the last part of the path.
pub fn fits(pattern: &str, path: &str) -> bool {
    let text = if pattern.contains('/') { path } else { last_part(path) };
    let mut parts = pattern.split('*');
    let start = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(start) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((end, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_endings_or_names_without_numbers() {
        for (path, kind) in [
            ("/db/000123.sst", "*.sst"),
            ("/db/MANIFEST-000004", "MANIFEST-#"),
            ("/x/test.db-wal", "*.db-wal"),
            ("/pg/base/5/16384", "#"),
            ("/pg/base/5/16384.1", "#.#"),
            ("/home/.profile", ".profile"),
            ("/tmp/ccA1.s (deleted)", "*.s"),
            ("/db/LOG.old.17", "LOG.old.#"),
            ("/repository/objects/8b/1ccd2baea78c3df6b54c1f0e9a2b7c6d5e4f3a", "#"),
            ("/x/deadbeef", "deadbeef"),
        ] {
            assert_eq!(kind_of(path), kind, "{path}");
        }
    }

    #[test]
    fn roles_go_by_names_and_by_folders() {
        for (path, role) in [
            ("/x/a.db-journal", Some("journal")),
            ("/x/a.db-wal", Some("write-ahead log")),
            ("/x/a.db", Some("main database")),
            ("/db/000012.sst", Some("table")),
            ("/db/000013.log", Some("log")),
            ("/tmp/ccA1.s (deleted)", Some("assembly")),
            ("/build/fs/inode.o", Some("object")),
            ("/pg/pg_wal/000000010000000000000001", Some("write-ahead log")),
            ("/pg/base/5/16384", Some("table or index")),
            ("/etc/hosts", None),
        ] {
            assert_eq!(role_of(path), role, "{path}");
        }
    }

    #[test]
    fn patterns_are_about_names_or_whole_paths() {
        for (pattern, path, fit) in [
            ("*.log", "/db/000012.log", true),
            ("*.log", "/db.log/000012.sst", false),
            ("*-journal", "/tmp/a.db-journal", true),
            ("*/L2/*.sst", "/db/L2/000012.sst", true),
            ("*/L2/*.sst", "/db/L1/000012.sst", false),
            ("a*b*c", "abc", true),
            // The end must not overlap what the middle has taken.
            ("a*bc*bc", "abc", false),
            ("LOG", "/db/LOG", true),
            ("LOG", "/db/LOG.old", false),
        ] {
            assert_eq!(fits(pattern, path), fit, "{pattern} {path}");
        }
    }
}
