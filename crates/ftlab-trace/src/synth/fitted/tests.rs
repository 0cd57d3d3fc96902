//! A fitted workload deals out what its model says.

use super::super::parse;
use ftlab_core::{Batch, OpKind, Source};

fn all(spec: &str) -> Vec<(u64, OpKind, u64, u32)> {
    let mut generator = parse(spec, 1 << 30, 4096, 7).unwrap();
    let (mut all, mut batch) = (Vec::new(), Batch::default());
    loop {
        generator.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            return all;
        }
        all.extend((0..batch.len()).map(|i| (batch.time_ns[i], batch.op[i], batch.offset[i], batch.length[i])));
    }
}

/// Ten pages, each written, then written again 20 requests later: 20 requests, so a life fills the episode.
const MODEL: &str = r#"
kind = "fitted"
version = 1
title = "ten pages"
[trace]
requests = 20
pages = 10
span = "1MiB"
[[class]]
objects = 10
references = 2
start = { write = 1 }
next.ww = "20"
write = "4KiB"
"#;

#[test]
fn every_object_is_referenced_as_often_as_its_class_says() {
    for requests in [20, 200] {
        let all = all(&MODEL.replacen("version", &format!("requests = {requests}\nversion"), 1));
        assert_eq!(all.len(), requests);
        let mut offsets: Vec<u64> = all.iter().map(|request| request.2).collect();
        offsets.sort_unstable();
        let counts: Vec<usize> = offsets.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        assert_eq!(counts, [requests / 10; 10], "further episodes go over the same pages");
    }
}

#[test]
fn seeds_repeat_and_footprint_scales() {
    assert_eq!(all(MODEL), all(MODEL));
    let twice = all(&MODEL.replacen("version", "footprint = 2.0\nversion", 1));
    let mut offsets: Vec<u64> = twice.iter().map(|request| request.2).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!((twice.len(), offsets.len()), (40, 20));
}

#[test]
fn what_cannot_be_is_said() {
    let refused = |spec: &str| parse(spec, 1 << 30, 4096, 7).err().unwrap().to_string();
    assert!(refused("fitted").contains("fitted:model=FILE"));
    assert!(refused("fitted:model=/no/such/file").contains("/no/such/file"));
    assert!(refused(&MODEL.replacen("version", "rate = 5\nversion", 1)).contains("no arrival times"));
    assert!(refused(&MODEL.replacen("version", "span = \"8KiB\"\nversion", 1)).contains("touches 40 KiB"));
    assert!(refused("webvm:requsts=5").contains("did you mean `requests`"));
}
