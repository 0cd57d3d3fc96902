//! Requests as they reach the device: pages of a file by their places, merged where they touch, and flushes.

use ftlab_core::OpKind;
use ftlab_core::request::flags;

use super::extents::PAGE;
use super::page_cache::Content;
use super::{File, JOURNAL, Replay, Request};
use crate::recording::Op;

impl Replay {
    /// A request of a call for pages of its file, as far as they have a place.
    pub(super) fn transfer(&mut self, op: &Op, kind: OpKind, first: u64, past: u64, bits: u8, contents: &[Content]) {
        let request = Request {
            time_ns: self.now,
            op: kind,
            offset: 0,
            length: 0,
            flags: bits,
            context: op.context,
            process: op.process,
            file: Some(op.file),
            stream: 0,
            contents_end: 0,
        };
        self.send(request, first, past, contents);
    }

    /// Cuts pages of a file into requests: by their places, and by the largest request.
    pub(super) fn send(&mut self, like: Request, first: u64, past: u64, contents: &[Content]) {
        let Some(file) = like.file else {
            return;
        };
        let File { map, stream, .. } = &self.files[file as usize];
        let stream = if like.op == OpKind::Write { *stream } else { 0 };
        let mut at = first;
        while at < past {
            let Some((place, pages)) = map.find(at) else {
                // A hole: reads of it go nowhere, and writes have been given a place.
                at = map.next_placed(at, past);
                continue;
            };
            let pages = pages.min(past - at).min(self.options.max_request / PAGE);
            let from = (at - first) as usize;
            if like.op == OpKind::Write {
                let known = contents.get(from..from + pages as usize).unwrap_or(&[]);
                self.contents.extend_from_slice(known);
                self.contents
                    .resize(self.contents.len() + pages as usize - known.len(), Content::default());
            }
            let request = Request {
                offset: place * PAGE,
                length: (pages * PAGE) as u32,
                stream,
                contents_end: self.contents.len(),
                ..like
            };
            // Requests that touch on the device are one, as the block layer merges them.
            let joined = self.requests.last_mut().filter(|last| {
                (last.time_ns, last.op, last.flags) == (request.time_ns, request.op, request.flags)
                    && (last.context, last.process, last.file) == (request.context, request.process, request.file)
                    && last.stream == request.stream
                    && last.offset + u64::from(last.length) == request.offset
                    && u64::from(last.length) + u64::from(request.length) <= self.options.max_request
            });
            match joined {
                Some(last) => {
                    last.length += request.length;
                    last.contents_end = request.contents_end;
                }
                None => self.requests.push(request),
            }
            at += pages;
        }
    }

    pub(super) fn make_durable(&mut self) {
        let contents_end = self.contents.len();
        let request = Request {
            time_ns: self.now,
            op: OpKind::Write,
            offset: self.journal * PAGE,
            length: PAGE as u32,
            flags: flags::SYNC | flags::METADATA,
            context: 0,
            process: 0,
            file: None,
            stream: 0,
            contents_end,
        };
        if self.options.journal {
            // Its content is nobody's: a page without a number.
            self.contents.push(Content::default());
            let contents_end = self.contents.len();
            self.requests.push(Request {
                contents_end,
                ..request
            });
            self.journal = (self.journal + 1) % JOURNAL;
        }
        self.requests.push(Request {
            op: OpKind::Flush,
            offset: 0,
            length: 0,
            flags: flags::SYNC,
            contents_end: self.contents.len(),
            ..request
        });
    }
}
