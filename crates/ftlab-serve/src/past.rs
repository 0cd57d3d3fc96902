//! What a drive with an image was before it is served again: a saved state, and a journal of what came after it.
//!
//! # Model
//! At an orderly end the state of the drive is saved beside the image (`FILE.state`), and the journal (`FILE.journal`) begins anew behind
//! it. A drive that is served again goes on from that state, and writes and trims of the journal are carried out once more, in their order
//! and without time. Data that neither of them knows, as after a change of the image by others or damage to the journal, is then mapped as by one
//! sequential write; what of it is zeros may have been trimmed and stays unmapped. If there is no state, they begin on a drive as `precondition` says. Without a journal that belongs to the image,
//! the map is made from the data, as by one sequential write.
//!
//! # Not modelled
//! After a crash: when requests came, hence what collected in idle time and which requests were under way together; contents,
//! so that data of the journal is shared with nothing on drives that deduplicate.

use std::io;
use std::path::Path;

use ftlab_core::{Error, IoRequest, Lpn, OpKind, Result, units};
use ftlab_drive::config::DriveConfig;
use ftlab_drive::state;
use ftlab_ftl::{Admitted, Counting, Ftl, HostRequest, Ticket};
use ftlab_nbd::store::{Change, Found, Image, Likeness, Past, StateId, Store, beside};

const WORN_OUT: &str =
    "the drive is worn out: it takes no more writes, and not all of the image's data has a place in its flash";
const DATA_ONLY: &str = "only the data of the image survived";

/// Makes a drive what it is before its first client, and adds notes on that.
pub type Fresh<'a> = dyn FnMut(&mut Ftl<Counting>, &mut Vec<String>) -> Result<()> + 'a;

/// Opens the image and brings `ftl` to where it was; `new` makes another one like it.
pub fn take_up(
    path: &Path,
    size: u64,
    config: &DriveConfig,
    (ftl, new): (&mut Ftl<Counting>, &dyn Fn() -> Result<Ftl<Counting>>),
    fresh: &mut Fresh<'_>,
    notes: &mut Vec<String>,
) -> Result<Image> {
    let state = beside(path, "state");
    if state.exists() && !state.is_file() {
        return Err(Error::input(format!(
            "{}: not a regular file; the image needs this name beside it",
            state.display()
        )));
    }
    let has_past = |what: &str| std::fs::metadata(beside(path, what)).is_ok_and(|facts| facts.len() > 0);
    let left_over = has_past("state") || has_past("journal");
    let (mut image, found) = Image::open(path, size)?;
    let at = |error: io::Error| Error::io(path, &error);
    let why = match found {
        Found::Nothing => {
            if left_over {
                notes.push(format!(
                    "the image is new: what was known of an earlier one by its name ({}, {}) is given up",
                    beside(path, "state").display(),
                    beside(path, "journal").display()
                ));
            }
            fresh(ftl, notes)?;
            return Ok(image);
        }
        Found::Data => "no journal of it".to_owned(),
        Found::Journal(past, likeness) => match goes_on(path, config, ftl, &past) {
            Ok(from_state) => {
                if !from_state {
                    fresh(ftl, notes)?;
                }
                let repeated = replay(ftl, config, &past.changes);
                let start = if from_state {
                    "its saved state"
                } else {
                    "a drive before its first client"
                };
                notes.push(format!(
                    "the drive goes on from {start} and {} writes and trims of the journal",
                    past.changes.len()
                ));
                notes.extend(doubt(&past, likeness));
                if repeated {
                    notes.extend(map_rest(ftl, config, &mut image, path)?);
                } else {
                    notes.push(WORN_OUT.to_owned());
                }
                return Ok(image);
            }
            Err(why) => {
                image.fold().map_err(at)?;
                // Some of the state may have been loaded.
                *ftl = new()?;
                why
            }
        },
    };
    fresh(ftl, notes)?;
    let changes = image.extents().map_err(at)?;
    if !replay(ftl, config, &changes) {
        notes.push(WORN_OUT.to_owned());
    }
    let bytes: u64 = changes.iter().map(|change| change.length).sum();
    notes.push(format!(
        "{DATA_ONLY} ({why}): the map was rebuilt from {} as by one sequential write",
        units::show_bytes(bytes)
    ));
    Ok(image)
}

/// Loads the state that the journal goes on from, if it is one; why that cannot be done.
fn goes_on(
    image: &Path,
    config: &DriveConfig,
    ftl: &mut Ftl<Counting>,
    past: &Past,
) -> std::result::Result<bool, String> {
    if past.since == StateId::default() {
        return Ok(false);
    }
    let path = beside(image, "state");
    if !path.exists() {
        return Err("the state that its journal goes on from is missing".to_owned());
    }
    if !state::name(&path).is_ok_and(|name| name == past.since) {
        return Err(format!(
            "{}: is not the state that the journal goes on from, or is damaged",
            path.display()
        ));
    }
    state::load_into(&path, config, ftl).map_err(|error| error.to_string())?;
    Ok(true)
}

/// False if the drive is worn out before it has done all of that.
fn replay(ftl: &mut Ftl<Counting>, config: &DriveConfig, changes: &[Change]) -> bool {
    let shift = config.layout.geometry.unit_bytes.trailing_zeros();
    for change in changes {
        let op = if change.trim { OpKind::Trim } else { OpKind::Write };
        // A request has at most 4 GiB, an extent may have more.
        let mut at = change.offset;
        while at < change.offset + change.length {
            let length = (change.offset + change.length - at).min(1 << 30);
            let request = HostRequest::of_bytes(&IoRequest::plain(op, at, length as u32), shift);
            if ftl.admit(&request, Ticket::NONE) == Admitted::EndOfLife {
                return false;
            }
            at += length;
        }
    }
    true
}

/// What speaks against the journal that the drive goes on from.
fn doubt(past: &Past, likeness: Likeness) -> Option<String> {
    let what = match likeness {
        _ if past.torn > 0 => format!(
            "{} entries of the journal are damaged or lie behind one that is, and were left out",
            past.torn
        ),
        Likeness::Same => return None,
        Likeness::Changed => "another program has changed the image since".to_owned(),
        Likeness::Other => {
            "the image is another file than the one it belonged to (a copy, or another image)".to_owned()
        }
    };
    Some(format!("{what}: the data is the image's, but map and wear may not be"))
}

/// Writes the units in which the image holds data other than zeros and the drive none; what there is to say of it.
fn map_rest(ftl: &mut Ftl<Counting>, config: &DriveConfig, image: &mut Image, path: &Path) -> Result<Option<String>> {
    let bytes = u64::from(config.layout.geometry.unit_bytes);
    let at = |error: io::Error| Error::io(path, &error);
    let held = image.extents().map_err(at)?;
    let mut units: Vec<u64> = held
        .iter()
        .flat_map(|data| data.offset / bytes..(data.offset + data.length).div_ceil(bytes))
        .filter(|&unit| !ftl.holds(Lpn(unit as u32)))
        .collect();
    units.dedup();
    let (mut missing, mut data) = (Vec::new(), vec![0; bytes as usize]);
    for unit in units {
        // The last unit may be one in part.
        data.truncate((image.size() - unit * bytes) as usize);
        image.read(unit * bytes, &mut data).map_err(at)?;
        // Where a file system has no holes, or larger ones, what was trimmed is zeros.
        if data.iter().any(|&byte| byte != 0) {
            missing.push(Change {
                trim: false,
                offset: unit * bytes,
                length: bytes,
            });
        }
    }
    if !replay(ftl, config, &missing) {
        return Ok(Some(WORN_OUT.to_owned()));
    }
    let count = missing.len() as u64;
    Ok((count > 0).then(|| {
        format!(
            "{} of the image were in neither state nor journal (another program has changed it, or they are of another image or damaged): mapped as \
             by one sequential write",
            units::show_bytes(count * bytes)
        )
    }))
}

/// Saves the state of the drive beside its image, from which the next service goes on.
pub fn keep(image: &Path, config: &DriveConfig, mut ftl: Ftl<Counting>) -> Result<()> {
    let facts = std::fs::metadata(image).map_err(|error| Error::io(image, &error))?;
    let (mut opened, _) = Image::open(image, facts.len())?;
    let path = beside(image, "state");
    state::save(&path, config, &mut ftl)?;
    let begun = opened.goes_on_from(state::name(&path)?, image);
    begun.map_err(|error| Error::io(image, &error))
}
