//! The flash pages that a host read needs: each once, however its units alternate between them.

/// Pages in the order in which the request meets them, and how many bytes of each it takes.
#[derive(Default)]
pub(crate) struct PagesToRead {
    pages: Vec<u32>,
    bytes: Vec<u32>,
}

impl PagesToRead {
    /// The request takes `bytes` more of `page`.
    #[inline]
    pub fn add(&mut self, page: u32, bytes: u32) {
        let last = self.pages.len().wrapping_sub(1);
        if self.pages.last() == Some(&page) {
            self.bytes[last] += bytes;
        } else if self.pages.contains(&page) {
            let known = self.pages.iter().position(|&known| known == page);
            self.bytes[known.unwrap_or(last)] += bytes;
        } else {
            self.pages.push(page);
            self.bytes.push(bytes);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pages.iter().copied().zip(self.bytes.iter().copied())
    }

    pub fn clear(&mut self) {
        self.pages.clear();
        self.bytes.clear();
    }
}
