//! Where FUSE is not built in: exports are no files.

use std::path::Path;
use std::sync::Arc;

use ftlab_core::{Error, Result};

use crate::Export;
use crate::poll::Ringing;
use crate::request::Message;

pub enum Files {}

impl Files {
    /// # Errors
    /// Always.
    pub fn show(folder: &Path, _: Arc<[Export]>, _: Ringing<Message>) -> Result<Self> {
        let what = "this build has no FUSE; `make build` adds it";
        Err(Error::input(format!("fuse {}: {what}", folder.display())))
    }
}
