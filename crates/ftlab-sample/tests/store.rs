//! Stores under kills, damage, torn ends and second writers.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ftlab_sample::read;
use ftlab_sample::record::Form;
use ftlab_sample::store::{LoadSpec, Store, Writer, load};

const TEXT: Form = Form::Text;

/// Folders of a store and of its disks.
struct Place {
    root: tempfile::TempDir,
    home: PathBuf,
    disks: Vec<PathBuf>,
}

fn place(disks: usize) -> Place {
    // A kill takes nothing from the system's memory, and there what is made durable waits for no disk.
    let memory = Path::new("/dev/shm");
    let root = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let disks: Vec<PathBuf> = (0..disks).map(|n| root.path().join(format!("d{n}"))).collect();
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    Place {
        home: root.path().join("store"),
        disks,
        root,
    }
}

fn create(place: &Place) -> Writer {
    Writer::create(&place.home, &place.disks, &TEXT, &[], 2048).unwrap()
}

/// All records, in no order.
fn records(home: &Path) -> ftlab_core::Result<Vec<String>> {
    let dataset = Store::open(home)?.dataset()?;
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    for (number, disk) in dataset.disks.iter().enumerate() {
        for partition in 0..disk.partitions {
            let loaded = read::load(dataset.place(number, partition), &[], &mut buffer)?;
            let text = String::from_utf8_lossy(&buffer[loaded.records]).into_owned();
            found.extend(text.lines().map(String::from));
        }
    }
    found.sort();
    Ok(found)
}

fn numbered(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("{n:08} {}", "x".repeat(n % 97))).collect()
}

/// The folder's files by name, for changing them.
fn files(place: &Place) -> Vec<PathBuf> {
    let folders = place.disks.iter().chain([&place.home]);
    let mut found: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.is_file() && !path.ends_with("lock"))
        .collect();
    found.sort();
    found
}

#[test]
fn records_come_back_over_commits_and_openings() {
    let place = place(3);
    let mut writer = create(&place);
    let all = numbered(0, 3000);
    for (at, record) in all.iter().enumerate() {
        writer.push(record.as_bytes()).unwrap();
        if at == 999 {
            writer.commit().unwrap();
        }
    }
    assert_eq!(records(&place.home).unwrap(), all[..1000]);
    writer.finish().unwrap();
    let (mut writer, notes) = Writer::append(&place.home).unwrap();
    assert!(notes.is_empty());
    writer.push(b"99999999 last").unwrap();
    let manifest = writer.finish().unwrap();
    assert_eq!(manifest.disks.iter().map(|disk| disk.records).sum::<u64>(), 3001);
    assert_eq!(
        records(&place.home).unwrap(),
        [&all[..], &["99999999 last".into()]].concat()
    );
    // Queues are shared out; how evenly goes by how fast the machine writes.
    assert!(manifest.disks.iter().all(|disk| disk.partitions > 0), "{manifest:?}");
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let place = place(2);
    let mut writer = create(&place);
    writer.push(b"one").unwrap();
    writer.commit().unwrap();
    let error = Writer::append(&place.home).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("another process writes it"), "{error}");
    let error = Writer::create(&place.home, &[], &TEXT, &[], 2048)
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("expected a new name"), "{error}");
    assert_eq!(records(&place.home).unwrap(), ["one"]);
    drop(writer);
    Writer::append(&place.home).unwrap();
}

#[test]
fn what_was_not_committed_is_gone_and_leaves_nothing() {
    let place = place(2);
    let mut writer = create(&place);
    writer.push(b"one").unwrap();
    writer.commit().unwrap();
    let before: Vec<Vec<u8>> = files(&place).iter().map(|path| fs::read(path).unwrap()).collect();
    for record in numbered(0, 500) {
        writer.push(record.as_bytes()).unwrap();
    }
    drop(writer);
    let after: Vec<Vec<u8>> = files(&place).iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(before, after);
}

/// Every bit of every byte of a store of four partitions, in turn: opening or reading refuses it and names the file.
#[test]
fn no_changed_byte_passes() {
    let place = place(2);
    let mut writer = create(&place);
    let all = numbered(0, 130);
    for record in &all {
        writer.push(record.as_bytes()).unwrap();
    }
    assert_eq!(writer.finish().unwrap().partitions(), 4);
    for path in files(&place) {
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        for at in 0..whole.len() {
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            let error = records(&place.home).map(|_| ()).unwrap_err().to_string();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                error.contains(name) && error.contains("expected"),
                "{} byte {at}: {error}",
                path.display()
            );
            changed[at] = whole[at];
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(records(&place.home).unwrap(), all);
    fs::rename(files(&place)[0].with_extension("index"), place.root.path().join("away")).unwrap();
    assert!(records(&place.home).is_err());
}

/// Logs of two disks in each other's place, and a partition copied over another of the same length.
#[test]
fn what_is_elsewhere_is_wrong() {
    let place = place(2);
    let mut writer = create(&place);
    for record in 0..4 {
        writer.push(format!("{record}{}", "y".repeat(2000)).as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let logs: Vec<PathBuf> = files(&place)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    let (a, b) = (fs::read(&logs[0]).unwrap(), fs::read(&logs[1]).unwrap());
    fs::write(&logs[0], &b).unwrap();
    assert!(records(&place.home).unwrap_err().to_string().contains("not of disk 0"));
    let mut copied = a.clone();
    let length = (a.len() - 32) / 2;
    copied.copy_within(32..32 + length, 32 + length);
    fs::write(&logs[0], &copied).unwrap();
    let error = records(&place.home).unwrap_err().to_string();
    assert!(
        error.contains("partition 1") && error.contains("its check fails"),
        "{error}"
    );
}

/// `ldd.json` of an earlier commit beside newer logs would be a store with less in it; a writer would cut the rest off.
#[test]
fn an_older_manifest_is_refused_and_nothing_is_lost() {
    let place = place(2);
    let all = numbered(0, 300);
    let manifest = place.home.join("ldd.json");
    let mut writer = create(&place);
    let mut older = vec![fs::read(&manifest).unwrap()];
    for part in all.chunks(100) {
        for record in part {
            writer.push(record.as_bytes()).unwrap();
        }
        writer.commit().unwrap();
        older.push(fs::read(&manifest).unwrap());
    }
    writer.finish().unwrap();
    let newest = fs::read(&manifest).unwrap();
    for (commit, old) in older.iter().enumerate() {
        fs::write(&manifest, old).unwrap();
        let error = records(&place.home).unwrap_err().to_string();
        assert!(
            error.contains(&format!("ldd.json: of commit {commit}, older than commit 4")),
            "{error}"
        );
        let error = Writer::append(&place.home).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("expected the newest ldd.json"), "{error}");
    }
    fs::write(&manifest, &newest).unwrap();
    assert_eq!(records(&place.home).unwrap(), all);
    // A store of before there were marks, and one whose writer was killed behind the commit, are read.
    for path in files(&place) {
        if path.extension().is_some_and(|end| end == "commits") {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(records(&place.home).unwrap(), all);
}

/// A log and an index at every length: below what was committed they are refused, behind it they are cut off with a note.
#[test]
fn a_torn_end_is_cut_off_at_every_length() {
    let place = place(1);
    let mut writer = create(&place);
    let all = numbered(0, 40);
    for record in &all {
        writer.push(record.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let logs: Vec<PathBuf> = files(&place)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "log" || end == "index"))
        .collect();
    assert_eq!(logs.len(), 2);
    for path in logs {
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = Writer::append(&place.home).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("expected"), "{length}: {error}");
            assert_eq!(
                fs::read(&path).unwrap().len(),
                length,
                "what is refused is left as it is"
            );
        }
        let torn = [&whole[..], &whole[..whole.len().min(300)]].concat();
        for length in whole.len()..torn.len() {
            fs::write(&path, &torn[..length]).unwrap();
            assert_eq!(records(&place.home).unwrap(), all);
            let (writer, notes) = Writer::append(&place.home).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "before anything is written");
            drop(writer);
            let is_log = path.extension().is_some_and(|e| e == "log");
            assert_eq!(notes.len(), usize::from(is_log && length > whole.len()), "{notes:?}");
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }
}

#[test]
fn files_are_loaded_as_they_are_read_in_place() {
    let place = place(2);
    let (a, b) = (place.root.path().join("a.csv"), place.root.path().join("b.csv"));
    fs::write(&a, "k,v\n1,\"x\ny\"\n\n2,\"q\"\"\"\r\n").unwrap();
    let long = format!("k,v\n3,{}\n4,end", "z".repeat(9 << 20));
    fs::write(&b, &long).unwrap();
    let spec = |append: bool, files: &[&Path]| {
        let json = serde_json::json!({"name": place.home, "files": files, "disks": if append { &[][..] } else { &place.disks[..] }, "append": append});
        LoadSpec::parse(&json.to_string()).unwrap()
    };
    let info = load(&spec(false, &[&a, &b]), &mut || Ok(())).unwrap();
    assert_eq!(
        (&info["records"], &info["files"], &info["format"]),
        (&4.into(), &2.into(), &"csv".into())
    );
    assert_eq!(info["columns"], serde_json::json!(["k", "v"]));
    let expected = ["", "1,\"x", "2,\"q\"\"\"", "4,end", "y\""].concat();
    let short: Vec<String> = records(&place.home)
        .unwrap()
        .into_iter()
        .filter(|line| line.len() < 100)
        .collect();
    assert_eq!(short.concat(), expected);
    let error = load(&spec(false, &[&a]), &mut || Ok(())).unwrap_err().to_string();
    assert!(error.contains("expected a new name, or --append"), "{error}");
    fs::write(&b, "k,w\n1,2\n").unwrap();
    let error = load(&spec(true, &[&b]), &mut || Ok(())).unwrap_err().to_string();
    assert!(
        error.contains("csv with fields k, w, expected csv with those of"),
        "{error}"
    );
    fs::write(&b, "k,v\n5,\"2\n").unwrap();
    let error = load(&spec(true, &[&b]), &mut || Ok(())).unwrap_err().to_string();
    assert!(error.contains("ends within quotes that opened at byte 6"), "{error}");
    let mut unquoted = spec(true, &[&b]);
    unquoted.no_quoted_newlines = true;
    let error = load(&unquoted, &mut || Ok(())).unwrap_err().to_string();
    assert!(error.contains("expected them in two LDDs"), "{error}");
    let info = load(&spec(true, &[&a]), &mut || Ok(())).unwrap();
    assert_eq!((&info["records"], &info["files"]), (&6.into(), &3.into()));
}

/// A writer that says after each commit what is safe, until it is killed: run by `kills` in a process of its own.
#[test]
#[ignore = "run by `kills`"]
fn writer_to_kill() {
    let Some(home) = std::env::var_os("FTLAB_STORE_TO_WRITE").map(PathBuf::from) else {
        return;
    };
    let (mut writer, _) = Writer::append(&home).unwrap();
    let mut at: usize = writer.manifest.disks.iter().map(|disk| disk.records as usize).sum();
    let mut out = std::io::stdout();
    loop {
        let to = at + 1 + at % 61;
        for record in numbered(at, to) {
            writer.push(record.as_bytes()).unwrap();
        }
        writer.commit().unwrap();
        at = to;
        writeln!(out, "safe {at}").unwrap();
        out.flush().unwrap();
    }
}

/// Kills a writer so many times, at other moments each time; after each, what it called safe is there, and no half of a commit.
fn kills(count: u64) {
    let place = place(3);
    drop(create(&place));
    let mut safe = 0;
    for round in 0..count {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer_to_kill", "--ignored", "--nocapture"])
            .env("FTLAB_STORE_TO_WRITE", &place.home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The first commit, and then a moment that differs.
        let first = lines.find_map(|line| line.unwrap().split("safe ").nth(1).map(String::from));
        std::thread::sleep(Duration::from_micros(round * 7919 % 9973));
        child.kill().unwrap();
        child.wait().unwrap();
        let rest = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("safe ").map(String::from));
        // A last line may be cut short by the kill; it is then smaller.
        let said = first
            .into_iter()
            .chain(rest)
            .filter_map(|number| number.parse::<usize>().ok());
        safe = said.fold(safe, usize::max);
        let found = records(&place.home).unwrap();
        assert!(found.len() >= safe, "round {round}: {} of {safe}", found.len());
        let ends = std::iter::successors(Some(0_usize), |at| Some(at + 1 + at % 61));
        let mut ends = ends.skip_while(|end| *end < found.len());
        assert_eq!(ends.next(), Some(found.len()), "round {round}: half of a commit");
        assert_eq!(found, numbered(0, found.len()), "round {round}");
        safe = found.len();
    }
    assert!(safe as u64 > count);
}

#[test]
fn forty_kills() {
    kills(40);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_kills() {
    // A store that grows takes longer to be read each time.
    (0..40).for_each(|_| kills(25));
}
