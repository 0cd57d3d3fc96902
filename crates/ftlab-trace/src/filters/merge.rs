//! Several traces as one, in order of time.

use ftlab_core::{Batch, Error, OpKind, Result, Source};

use crate::numbered::Numbered;
use crate::rows;

/// One of the traces that are merged.
pub struct Part {
    pub name: String,
    pub source: Box<dyn Source>,
    /// Added to its addresses.
    pub base: u64,
}

/// Several sources interleaved by time, each with its own clock starting at 0; a tie goes to the part named first.
///
/// Volumes get numbers anew. Of parts that lie side by side (one has a `base`) each keeps its volumes to itself, under
/// names with the part's in front, `PART:VOLUME`; of parts that share their addresses, volumes of one name are one volume.
/// Labels of one name are one label either way, and the empty name is that of requests without one. A part without names
/// has its numbers as names.
pub struct Merge {
    parts: Vec<Reading>,
    apart: bool,
    volumes: Numbered,
    labels: Numbered,
}

struct Reading {
    part: Part,
    batch: Batch,
    at: usize,
    over: bool,
    /// The merge's numbers of the part's volumes and labels.
    volumes: Vec<u16>,
    labels: Vec<u16>,
}

/// The label of requests without one, whose name is empty.
const UNLABELLED: u16 = 0;

impl Merge {
    /// All parts in one address range, or where `base` says.
    pub fn new(parts: Vec<Part>) -> Self {
        let apart = parts.iter().any(|part| part.base > 0);
        let reading = parts.into_iter().map(|part| Reading {
            part,
            batch: Batch::default(),
            at: 0,
            over: false,
            volumes: Vec::new(),
            labels: Vec::new(),
        });
        // A request of a part without labels gets 0 where another part has them.
        let mut labels = Numbered::default();
        labels.number("");
        Merge {
            parts: reading.collect(),
            apart,
            volumes: Numbered::default(),
            labels,
        }
    }

    /// The part with the earliest request, and the time up to which it may go on.
    fn next(&mut self) -> Result<Option<(usize, u64)>> {
        for reading in &mut self.parts {
            reading.fill()?;
        }
        let times = || {
            let time = |(k, reading): (usize, &Reading)| Some((*reading.batch.time_ns.get(reading.at)?, k));
            self.parts.iter().enumerate().filter_map(time)
        };
        let Some((_, first)) = times().min() else {
            return Ok(None);
        };
        // A part named earlier wins a tie. It comes later than the first one here, so its time is above 0.
        let bound = |(time, k): (u64, usize)| if k < first { time - 1 } else { time };
        let until = times().filter(|&(_, k)| k != first).map(bound).min();
        Ok(Some((first, until.unwrap_or(u64::MAX))))
    }
}

impl Reading {
    fn fill(&mut self) -> Result<()> {
        if self.at == self.batch.len() && !self.over {
            self.at = 0;
            self.part.source.next_batch(&mut self.batch)?;
            self.over = self.batch.is_empty();
        }
        Ok(())
    }
}

/// Enters the numbers of a part up to `highest` into `known`.
fn learn(
    all: &mut Numbered,
    known: &mut Vec<u16>,
    highest: u16,
    prefix: Option<&str>,
    names: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    if usize::from(highest) < known.len() {
        return Ok(());
    }
    let names = names();
    for number in known.len()..=usize::from(highest) {
        let own = names.get(number).cloned().unwrap_or_else(|| number.to_string());
        let name = match prefix {
            Some(part) => format!("{part}:{own}"),
            None => own,
        };
        let number = all.number(&name);
        known.push(number.ok_or_else(|| Error::input("the traces together have more than 65,536 volumes or labels"))?);
    }
    Ok(())
}

impl Source for Merge {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        while batch.len() < Batch::TARGET {
            let Some((k, until)) = self.next()? else {
                return Ok(());
            };
            let reading = &mut self.parts[k];
            let from = &reading.batch;
            let prefix = self.apart.then_some(reading.part.name.as_str());
            while reading.at < from.len() && from.time_ns[reading.at] <= until && batch.len() < Batch::TARGET {
                let i = reading.at;
                let volume = from.volume[i];
                let source = &reading.part.source;
                learn(&mut self.volumes, &mut reading.volumes, volume, prefix, || {
                    source.volume_names()
                })?;
                rows::append(batch, from, i);
                let last = batch.len() - 1;
                batch.volume[last] = reading.volumes[usize::from(volume)];
                if from.op[i] != OpKind::Flush {
                    batch.offset[last] = batch.offset[last].saturating_add(reading.part.base);
                }
                if let Some(&label) = from.label.get(i) {
                    learn(&mut self.labels, &mut reading.labels, label, None, || {
                        source.label_names()
                    })?;
                    let is_labelled = from.unlabelled != Some(label);
                    batch.label[last] = if is_labelled {
                        reading.labels[usize::from(label)]
                    } else {
                        UNLABELLED
                    };
                    batch.unlabelled = Some(UNLABELLED);
                }
                reading.at += 1;
            }
        }
        Ok(())
    }

    fn remaining(&self) -> Option<u64> {
        self.parts
            .iter()
            .map(|reading| Some(reading.part.source.remaining()? + (reading.batch.len() - reading.at) as u64))
            .sum()
    }

    fn volume_names(&self) -> Vec<String> {
        self.volumes.names().to_vec()
    }

    fn label_names(&self) -> Vec<String> {
        match self.labels.names() {
            [_] => Vec::new(),
            names => names.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fixed, collect, requests};
    use super::*;

    fn two() -> (Fixed, Fixed) {
        let mut one = requests("0,write,0,512\n10,read,512,512\n20,flush,,\n");
        one.batch.volume = vec![0, 1, 0];
        one.volumes = vec!["a".to_owned(), "b".to_owned()];
        let mut other = requests("0,read,0,512\n5,read,4096,512\n10,read,0,512\n30,read,0,512\n");
        other.batch.pid = vec![1, 2, 3, 4];
        other.volumes = vec!["b".to_owned()];
        (one, other)
    }

    fn part(name: &str, source: Fixed) -> Part {
        Part {
            name: name.to_owned(),
            source: Box::new(source),
            base: 0,
        }
    }

    #[test]
    fn requests_come_by_time_and_ties_by_part() {
        let (one, other) = two();
        for cut in 1..5 {
            let (one, other) = (one.clone().cut(cut), other.clone().cut(cut));
            let mut merge = Merge::new(vec![part("x", one), part("y", other)]);
            assert_eq!(merge.remaining(), Some(7));
            let batch = collect(&mut merge);
            assert_eq!(batch.time_ns, [0, 0, 5, 10, 10, 20, 30]);
            assert_eq!(batch.pid, [0, 1, 2, 0, 3, 0, 4]);
            // `b` is one volume: 0 is a, 1 is b.
            assert_eq!(batch.volume, [0, 1, 1, 1, 1, 0, 1]);
            assert_eq!(merge.volume_names(), ["a", "b"]);
        }
    }

    #[test]
    fn a_later_part_gives_way_at_a_tie() {
        let one = requests("0,write,0,512\n5,write,1,512\n5,write,2,512\n");
        let other = requests("0,read,10,512\n1,read,11,512\n5,read,12,512\n");
        let batch = collect(&mut Merge::new(vec![part("x", one), part("y", other)]));
        assert_eq!(batch.offset, [0, 10, 11, 1, 2, 12]);
    }

    #[test]
    fn side_by_side_volumes_stay_apart() {
        let (one, other) = two();
        let base = 512 * 4096;
        let other = Part {
            base,
            ..part("y", other)
        };
        let mut merge = Merge::new(vec![part("x", one), other]);
        let batch = collect(&mut merge);
        assert_eq!(batch.offset, [0, base, base + 4096, 512, base, 0, base]);
        assert_eq!(batch.volume, [0, 1, 1, 2, 1, 0, 1]);
        assert_eq!(merge.volume_names(), ["x:a", "y:b", "x:b"]);
    }
}
