//! Only requests of some kinds.
//!
//! # Model
//! A request passes if it has one of the values asked for under every key that is given. A label or process that never
//! appears is an error at the stream's end for labels, and an empty stream for processes.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `op` | operations | of `read`, `write`, `trim`, `flush`, between commas | all |
//! | `label` | labels (file kinds, for instance) by name | names between commas | all |
//! | `pid` | process ids | numbers between commas | all |
//!
//! At least one is needed.
//! # Not modelled
//! Dependencies: requests that waited for a removed one keep their arrival times.
//! # Source
//! Our own.

use ftlab_core::{Batch, Error, OpKind, Result, Source, error};

use super::frame::{Edit, Stage, editing};
use super::named::Named;
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let ops = keys.text("op").map(|list| ops(&list)).transpose()?;
    let labels = keys.text("label").map(|list| Named::new("label", &list));
    let pids = match keys.text("pid") {
        None => None,
        Some(list) => {
            let pids = list.split(',').map(|pid| pid.trim().parse::<u32>());
            let pids: std::result::Result<Vec<u32>, _> = pids.collect();
            Some(pids.map_err(|_| keys.wrong("pid", &list, "process ids between commas, such as 7,12"))?)
        }
    };
    if ops.is_none() && labels.is_none() && pids.is_none() {
        return Err(Error::input(
            "filter `only` needs `op`, `label` or `pid`, such as only:op=write",
        ));
    }
    Ok(editing(Only { ops, labels, pids }))
}

fn ops(list: &str) -> Result<[bool; 4]> {
    let mut wanted = [false; 4];
    let names = OpKind::ALL.map(OpKind::name);
    for name in list.split(',').map(str::trim) {
        let op = OpKind::ALL.into_iter().find(|op| op.name() == name);
        wanted[op.ok_or_else(|| error::unknown("operation", name, &names))? as usize] = true;
    }
    Ok(wanted)
}

struct Only {
    ops: Option<[bool; 4]>,
    labels: Option<Named>,
    pids: Option<Vec<u32>>,
}

impl Edit for Only {
    fn edit(&mut self, batch: &mut Batch, from: &dyn Source) -> Result<()> {
        if let Some(labels) = &mut self.labels {
            labels.look(&batch.label, || from.label_names());
        }
        let Only { ops, labels, pids } = self;
        rows::retain(batch, |batch, i| {
            ops.is_none_or(|ops| ops[batch.op[i] as usize])
                && labels
                    .as_ref()
                    .is_none_or(|labels| batch.label.get(i).is_some_and(|&label| labels.has(label)))
                && pids
                    .as_ref()
                    .is_none_or(|pids| batch.pid.get(i).is_some_and(|pid| pids.contains(pid)))
        });
        Ok(())
    }

    fn finish(&mut self, _: &dyn Source) -> Result<()> {
        self.labels.as_ref().map_or(Ok(()), Named::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fixed, failure, filtered, requests};

    #[test]
    fn every_key_must_hold() {
        let mut all = requests("0,write,0,512\n1,read,512,512\n2,write,1024,512\n3,flush,,\n4,trim,0,512\n");
        all.batch.pid = vec![7, 7, 8, 8, 9];
        let offsets = |spec: &str| filtered(&[spec], all.clone()).time_ns;
        assert_eq!(offsets("only:op=write,flush"), [0, 2, 3]);
        assert_eq!(offsets("only:pid=7,9"), [0, 1, 4]);
        assert_eq!(offsets("only:op=write,pid=8"), [2]);
        assert_eq!(
            failure(&["only:op=wrte"], all.clone()),
            "unknown operation `wrte`; did you mean `write`? (known: read, write, trim, flush)"
        );
        assert!(failure(&["only"], all.clone()).contains("needs `op`"));
    }

    #[test]
    fn labels_go_by_their_names() {
        let Fixed { mut batch, .. } = requests("0,write,0,512\n1,read,512,512\n2,write,1024,512\n");
        batch.label = vec![0, 1, 1];
        let all = Fixed {
            labels: vec!["db".to_owned(), "wal".to_owned()],
            ..Fixed::new(batch)
        };
        assert_eq!(filtered(&["only:label=wal"], all.clone()).time_ns, [1, 2]);
        assert_eq!(filtered(&["only:label=wal,db"], all.clone()).len(), 3);
        assert!(failure(&["only:label=wall"], all).contains("unknown label `wall`; did you mean `wal`?"));
    }
}
