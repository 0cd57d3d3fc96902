//! How groups become correlated pages and a directory of them: sizes within a budget.

use ftlab_core::{Error, Result};

use super::correlated::Pages;
use super::directory::{Directory, HEAD_BYTES};
use super::filters;
use super::params::Fit;

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Most LPNs in a page.
    pub page_lpns: u32,
    /// Pages may hold fewer if the directory has no room for the filter of a full one.
    pub may_be_smaller: bool,
    /// Bytes of the directory; none: full search.
    pub budget: Option<u64>,
    pub cache_bytes: u64,
    /// LPNs are below.
    pub units: u32,
    /// Whatever the budget.
    pub most_pages: usize,
    pub false_positive: f64,
    /// Of each filter; 0: as `false_positive` says.
    pub filter_bits: u32,
    pub fit: Fit,
}

pub struct LaidOut {
    pub pages: Pages,
    pub directory: Directory,
    /// Pages that were too many.
    pub left_out: u64,
    /// Of the directory, when all pages are live.
    pub bytes: u64,
}

impl Plan {
    /// The most pages that any groups can become.
    pub fn most_pages(&self) -> usize {
        let in_budget = self.budget.map_or(u64::MAX, |budget| budget / bytes_of(8));
        self.most_pages.min(in_budget.min(u64::from(u32::MAX)) as usize)
    }

    /// Groups with their keys in front, best first. Refuses a directory that has no room for a page.
    pub fn lay_out(&self, groups: &[Vec<u32>]) -> Result<LaidOut> {
        let pages = Pages::pack(groups, self.page_lpns, self.units);
        let Some(budget) = self.budget else {
            return Ok(self.keep(pages, usize::MAX, Directory::search));
        };
        if pages.len() == 0 {
            return Ok(self.keep(pages, 0, |_| Directory::default()));
        }
        let wanted = self.filter(&pages);
        let (pages, wanted) = match self.may_be_smaller && budget < bytes_of(wanted) {
            true => self.smaller(groups, budget).unwrap_or((pages, wanted)),
            false => (pages, wanted),
        };
        let (count, bits) = match self.fit {
            Fit::Pages => (budget / bytes_of(wanted), wanted),
            Fit::Filters => {
                let count = pages.len().min(self.most_pages) as u64;
                let each = (budget / count).saturating_sub(HEAD_BYTES).saturating_mul(8);
                let bits = each.min(u64::from(wanted)) as u32;
                (if bits == 0 { 0 } else { count }, bits)
            }
        };
        if count == 0 {
            let expected = match self.fit {
                Fit::Pages => format!("one page's {HEAD_BYTES} bytes and its filter of {wanted} bits"),
                Fit::Filters => {
                    let pages = pages.len().min(self.most_pages);
                    format!("{HEAD_BYTES} bytes and a byte of filter for each of {pages} pages, or fit=pages")
                }
            };
            return Err(Error::input(format!(
                "mapping policy `cpftl`: directory: {budget} of the {} bytes of ftl.map_cache: expected room for {expected}",
                self.cache_bytes
            )));
        }
        Ok(self.keep(pages, count as usize, |pages| Directory::new(pages, bits)))
    }

    /// The first `count` pages, no more than there may be.
    fn keep(&self, mut pages: Pages, count: usize, directory: impl Fn(&Pages) -> Directory) -> LaidOut {
        let all = pages.len();
        pages.truncate(count.min(self.most_pages));
        let directory = directory(&pages);
        LaidOut {
            bytes: directory.bytes(pages.len() as u32),
            directory,
            left_out: (all - pages.len()) as u64,
            pages,
        }
    }

    /// Pages with as many LPNs as the filter of one takes that fills the budget, and the bits that theirs want.
    fn smaller(&self, groups: &[Vec<u32>], budget: u64) -> Option<(Pages, u32)> {
        let bits = budget.saturating_sub(HEAD_BYTES).saturating_mul(8);
        let lpns = filters::keys_for(bits.min(u64::from(u32::MAX)) as u32, self.false_positive);
        (lpns >= 2).then(|| {
            let pages = Pages::pack(groups, lpns.min(self.page_lpns), self.units);
            let wanted = self.filter(&pages);
            (pages, wanted)
        })
    }

    /// Bits of the filter that the fullest page wants.
    fn filter(&self, pages: &Pages) -> u32 {
        match self.filter_bits {
            0 => filters::bits_for(pages.most_lpns(), self.false_positive),
            bits => bits.next_multiple_of(8),
        }
    }
}

/// Bytes of the directory for a page with a filter of so many bits.
fn bytes_of(bits: u32) -> u64 {
    HEAD_BYTES + u64::from(bits / 8)
}
