//! The files of one trace as one stream in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use ftlab_core::{Batch, Error, Result};

use crate::arrivals::{Arrivals, Known, Portion, WINDOW};
use crate::clock::Clock;
use crate::formats::{Detected, Reader, detect};
use crate::input::Input;
use crate::labels::Labels;
use crate::numbered::Numbered;
use crate::options::ReadOptions;
use crate::report::{Choice, Skipped, TraceReport};
use crate::rows;
use crate::settings::{Order, Setting};

/// Of the steps from stamp to stamp, so large a share back is no disorder of a log that was written in order.
const MUCH_DISORDER: f64 = 0.25;

/// The readers of a trace's files. Times start at 0 and never decrease.
///
/// Each file is read one batch ahead, so that its clock sees what follows a stamp, and put in the order of its stamps where
/// its format is one of merged logs or its beginning is in no order at all ([`MUCH_DISORDER`]), unless the settings say
/// otherwise.
///
/// Several files are merged by time, a tie going to the file named first. A volume of the same name in two files is the
/// same volume, and so with labels. A file without a byte is passed over beside others: a CPU without events leaves one.
///
/// A damaged file ends the trace where its damage begins; what came before is given out first.
pub struct Files {
    format: String,
    reason: String,
    choices: Vec<Choice>,
    files: Vec<OneFile>,
    /// Files with a request at hand, the earliest on top. Unused with one file.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    started: bool,
    volumes: Numbered,
    labels: Labels,
    first_time: Option<u64>,
    /// What goes wrong next, once the requests before it have been given out.
    failed: Option<Error>,
}

struct OneFile {
    reader: Box<dyn Reader>,
    /// The order that the settings or the format ask for.
    asked: Option<Order>,
    /// What has been read and not been stamped, once anything has been read.
    ahead: Option<Portion>,
    arrivals: Arrivals,
    /// The trace's numbers of the file's volumes.
    numbers: Vec<u16>,
    /// The trace's numbers of the file's labels.
    labels: Vec<u16>,
    /// On its way out, and what was known when it was read.
    batch: Batch,
    /// Memory for the next.
    spare: Batch,
    known: Known,
    next: usize,
    clock: Clock,
    failed: Option<Error>,
}

impl OneFile {
    fn new(reader: Box<dyn Reader>, asked: Option<Order>) -> Self {
        OneFile {
            reader,
            asked,
            ahead: None,
            arrivals: Arrivals::new(asked.unwrap_or(Order::File)),
            numbers: Vec::new(),
            labels: Vec::new(),
            batch: Batch::default(),
            spare: Batch::default(),
            known: Known::default(),
            next: 0,
            clock: Clock::default(),
            failed: None,
        }
    }

    /// The next portion of the file, empty at its end or where it is damaged.
    fn read(&mut self) -> Portion {
        let mut portion = Portion {
            batch: std::mem::take(&mut self.spare),
            known: Known::default(),
        };
        if self.failed.is_none()
            && let Err(error) = self.reader.read(&mut portion.batch)
        {
            self.failed = Some(error);
        }
        let progress = self.reader.progress();
        portion.known = Known {
            lines: progress.batch_lines,
            exact: progress.batch_exact,
            volumes: self.reader.volumes().len(),
            labels: self.reader.labels().len(),
            processes: self.reader.take_process_names(),
        };
        portion
    }

    /// The next requests in the order of their arrival; `None` at the end.
    fn next(&mut self) -> Result<Option<Portion>> {
        if self.ahead.is_none() {
            let (first, second) = (self.read(), self.read());
            self.settle_order(&first.batch.time_ns, &second.batch.time_ns);
            self.ahead = Some(first);
            self.advance(second);
        }
        loop {
            let ended = self.ahead.as_ref().is_none_or(|ahead| ahead.batch.is_empty());
            if let Some(portion) = self.arrivals.take(ended) {
                self.check_order()?;
                return Ok(Some(portion));
            }
            if ended {
                return self.failed.clone().map_or(Ok(None), Err);
            }
            let next = self.read();
            self.advance(next);
        }
    }

    /// Stamps what was ahead, and takes `next` in its place.
    fn advance(&mut self, next: Portion) {
        if let Some(mut portion) = self.ahead.replace(next).filter(|portion| !portion.batch.is_empty()) {
            let behind = self.ahead.as_ref().map_or(&[][..], |next| &next.batch.time_ns);
            self.clock.run(&mut portion.batch.time_ns, behind);
            self.arrivals.put(portion);
        }
    }

    fn settle_order(&mut self, first: &[u64], second: &[u64]) {
        let stamps: Vec<u64> = first.iter().chain(second).copied().collect();
        let back = stamps.windows(2).filter(|pair| pair[1] < pair[0]).count();
        if self.asked.is_none() && back > 1 && back as f64 > MUCH_DISORDER * stamps.len() as f64 {
            self.arrivals = Arrivals::new(Order::Time);
        }
        self.clock.sorting = self.arrivals.order() == Order::Time;
    }

    fn check_order(&self) -> Result<()> {
        if !self.arrivals.descends() {
            return Ok(());
        }
        let name = self.reader.input().name();
        Err(Error::input(format!(
            "{name}: the time stamps go back for more than {WINDOW} requests, within which they can be sorted: expected a \
             file in the order of its times, or order `file`"
        )))
    }
}

impl Files {
    /// Opens the files; `sidecar` names the file from which some of the options come.
    pub fn open(paths: &[PathBuf], options: &ReadOptions, sidecar: Option<&str>) -> Result<Self> {
        let mut inputs = Vec::with_capacity(paths.len());
        for path in paths {
            inputs.push(Input::open(path)?);
        }
        let mut files = Self::new(inputs, options)?;
        if let Some(sidecar) = sidecar {
            files.reason += &format!("; options from {sidecar}");
        }
        Ok(files)
    }

    pub fn from_bytes(name: &str, bytes: Vec<u8>, options: &ReadOptions) -> Result<Self> {
        Self::new(vec![Input::from_bytes(name, bytes)?], options)
    }

    fn new(inputs: Vec<Input>, options: &ReadOptions) -> Result<Self> {
        let mut files = Vec::with_capacity(inputs.len());
        let mut chosen: Option<(Detected, String)> = None;
        let mut left = inputs.len();
        let mut empty = 0u32;
        for mut input in inputs {
            let name = input.name().to_owned();
            left -= 1;
            input.fill()?;
            if input.bytes().is_empty() && (left > 0 || chosen.is_some()) {
                empty += 1;
                continue;
            }
            let found = detect(&mut input, options)?;
            let format = found.format;
            // All files are read alike: with the guesses that the first one led to.
            let settings = match &chosen {
                Some((first, first_file)) if first.format.name != format.name => {
                    return Err(Error::input(format!(
                        "{name} is in the format {}, but {first_file} in {}: expected one format for all files of a trace",
                        format.name, first.format.name
                    )));
                }
                Some((first, _)) => first.settings.clone(),
                None => found.settings.clone(),
            };
            chosen.get_or_insert((found, name));
            let order = settings.order.or(format.order());
            files.push(OneFile::new(format.open(input, &settings)?, order));
        }
        let Some((first, _)) = chosen else {
            return Err(Error::input("no trace file was named: expected at least one"));
        };
        let mut reason = first.reason;
        if files.len() > 1 {
            reason += &format!("; {} files merged by time", files.len());
        }
        if empty > 0 {
            reason += &format!("; {empty} empty files skipped");
        }
        Ok(Files {
            format: first.format.name.to_owned(),
            reason,
            choices: first.choices,
            files,
            queue: BinaryHeap::new(),
            started: false,
            volumes: Numbered::default(),
            labels: Labels::default(),
            first_time: None,
            failed: None,
        })
    }

    pub fn one_address_space(&self) -> bool {
        self.files.iter().any(|f| f.reader.one_address_space())
    }

    pub fn volumes(&self) -> &[String] {
        self.volumes.names()
    }

    pub fn labels(&self) -> &[String] {
        self.labels.names()
    }

    /// Fills an empty batch with the next requests; leaves it empty at the end.
    pub fn read(&mut self, batch: &mut Batch) -> Result<()> {
        if let [_] = self.files.as_slice() {
            self.refill(0)?;
            std::mem::swap(batch, &mut self.files[0].batch);
        } else {
            self.merge(batch)?;
        }
        self.labels.label_processes(batch);
        batch.unlabelled = self.labels.unnamed();
        if let Some(&first) = batch.time_ns.first() {
            let start = *self.first_time.get_or_insert(first);
            batch.time_ns.iter_mut().for_each(|t| *t -= start);
        }
        Ok(())
    }

    /// The next batch of one file: in order of time, volumes and labels renumbered.
    fn refill(&mut self, which: usize) -> Result<()> {
        let file = &mut self.files[which];
        file.batch.clear();
        file.next = 0;
        let Some(Portion { batch, known }) = file.next()? else {
            return Ok(());
        };
        file.spare = std::mem::replace(&mut file.batch, batch);
        for name in &file.reader.volumes()[file.numbers.len()..known.volumes.max(file.numbers.len())] {
            let number = self.volumes.number(name).ok_or_else(|| {
                Error::input(format!(
                    "{}: volume {name} is one too many, expected at most 65536 volumes",
                    file.reader.input().name()
                ))
            })?;
            file.numbers.push(number);
        }
        if file.numbers.iter().enumerate().any(|(i, &n)| i != usize::from(n)) {
            for volume in &mut file.batch.volume {
                *volume = file.numbers[usize::from(*volume)];
            }
        }
        for name in &file.reader.labels()[file.labels.len()..known.labels.max(file.labels.len())] {
            file.labels.push(self.labels.number(name));
        }
        if file.labels.iter().enumerate().any(|(i, &n)| i != usize::from(n)) {
            for label in &mut file.batch.label {
                *label = file.labels.get(usize::from(*label)).copied().unwrap_or(0);
            }
        }
        for (pid, name) in &known.processes {
            self.labels.name_process(*pid, name);
        }
        file.known = known;
        Ok(())
    }

    fn merge(&mut self, batch: &mut Batch) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if !self.started {
            self.started = true;
            for which in 0..self.files.len() {
                self.refill(which)?;
                self.enqueue(which);
            }
        }
        while batch.len() < Batch::TARGET {
            let Some(Reverse((_, which))) = self.queue.pop() else {
                break;
            };
            // Everything of this file up to the next one's time goes at once.
            let until = self
                .queue
                .peek()
                .map_or((u64::MAX, usize::MAX), |&Reverse(other)| other);
            let file = &mut self.files[which];
            while batch.len() < Batch::TARGET && file.next < file.batch.len() {
                if (file.batch.time_ns[file.next], which) > until {
                    break;
                }
                rows::append(batch, &file.batch, file.next);
                file.next += 1;
            }
            if file.next == file.batch.len()
                && let Err(error) = self.refill(which)
            {
                self.failed = Some(error);
                break;
            }
            self.enqueue(which);
        }
        Ok(())
    }

    fn enqueue(&mut self, which: usize) {
        let file = &self.files[which];
        if let Some(&time) = file.batch.time_ns.get(file.next) {
            self.queue.push(Reverse((time, which)));
        }
    }

    /// Mean share of the files read.
    pub fn progress(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.files.iter().map(|f| f.reader.input().progress()).collect();
        shares.map(|s| s.iter().sum::<f64>() / s.len().max(1) as f64)
    }

    /// File and line of request `i` of the last batch; lines in a range if some of them were bad.
    pub fn place(&self, i: usize) -> Option<String> {
        let [file] = self.files.as_slice() else {
            return None;
        };
        let (first, last) = file.known.lines?;
        let name = file.reader.input().name();
        let line = first + i as u64;
        Some(match file.known.exact {
            true => format!("{name}, line {line}"),
            false => format!("{name}, lines {line} to {last}"),
        })
    }

    /// What the readers know about the trace.
    pub fn report(&self) -> TraceReport {
        let mut report = TraceReport {
            format: self.format.clone(),
            reason: self.reason.clone(),
            choices: self.choices.clone(),
            timed: self.files.iter().all(|f| f.reader.timed()),
            has_operations: self.files.iter().all(|f| f.reader.has_operations()),
            ..TraceReport::default()
        };
        for file in &self.files {
            let progress = file.reader.progress();
            report.files.push(file.reader.input().name().to_owned());
            report.lines += progress.lines;
            report.out_of_order += file.clock.out_of_order;
            report.clock_jumps += file.clock.jumps;
            report.stray_times += file.clock.strays;
            report.late += file.arrivals.late;
            add_up(&mut report.skipped, progress.skipped);
            add_up(&mut report.left_out, progress.left_out);
            if report.first_bad.is_none() {
                report.first_bad = progress.first_bad;
            }
        }
        let given = report
            .choices
            .iter()
            .any(|choice| choice.setting == Setting::Order.name());
        if !given && self.files.iter().any(|file| file.arrivals.order() == Order::Time) {
            report.choices.push(Choice {
                setting: Setting::Order.name().to_owned(),
                value: Order::Time.name().to_owned(),
                given: false,
            });
        }
        report.checksum = self.checksum();
        report
    }

    /// BLAKE3 of the one file's bytes, or of the files' digests one after the other.
    fn checksum(&self) -> Option<String> {
        if !self.files.iter().all(|f| f.reader.input().ended()) {
            return None;
        }
        if let [file] = self.files.as_slice() {
            return Some(file.reader.input().hash().to_hex().to_string());
        }
        let mut all = blake3::Hasher::new();
        for file in &self.files {
            all.update(file.reader.input().hash().as_bytes());
        }
        Some(all.finalize().to_hex().to_string())
    }
}

/// Adds counts to those of the same reason.
fn add_up(all: &mut Vec<Skipped>, more: Vec<Skipped>) {
    for skipped in more {
        match all.iter_mut().find(|s| s.reason == skipped.reason) {
            Some(known) => known.count += skipped.count,
            None => all.push(skipped),
        }
    }
}
