//! The film of a run (`--film`): what state each reclaim unit is in, again and again, with write amplification between.
//!
//! Frames are taken where the time series takes a point, so a request costs nothing. When there are too many, every other one is
//! dropped and the interval doubles, as in the series; units share tiles where there are many. A film is a few hundred
//! thousand rows at most, whatever the run.
//!
//! *Not modelled*: what happens between two frames; on the counting backend a collection is over when its request is.

use ftlab_drive::tiles::Tile;

use crate::sampler::{Reading, keep_every_other};
use crate::table::{Column, Table};

const MOST_FRAMES: usize = 240;
/// Tiles of a frame, at most.
pub const MOST_TILES: usize = 1024;
const FIRST_INTERVAL: u64 = 64;

#[derive(Debug)]
struct Frame {
    reading: Reading,
    tiles: Vec<Tile>,
}

/// Collects frames at growing intervals.
#[derive(Debug)]
pub struct Film {
    frames: Vec<Frame>,
    interval: u64,
    next: u64,
}

impl Film {
    /// With the frame before the first request.
    pub fn new(reading: Reading, tiles: Vec<Tile>) -> Self {
        Film {
            frames: vec![Frame { reading, tiles }],
            interval: FIRST_INTERVAL,
            next: FIRST_INTERVAL,
        }
    }

    /// Takes a frame if its time has come.
    pub fn look(&mut self, reading: Reading, tiles: impl FnOnce(usize) -> Vec<Tile>) {
        if reading.requests < self.next {
            return;
        }
        self.frames.push(Frame {
            reading,
            tiles: tiles(MOST_TILES),
        });
        if self.frames.len() > MOST_FRAMES {
            keep_every_other(&mut self.frames);
            self.interval *= 2;
        }
        self.next = reading.requests + self.interval;
    }

    /// The last frame, whenever it comes.
    pub fn finish(&mut self, reading: Reading, tiles: impl FnOnce(usize) -> Vec<Tile>) {
        if self
            .frames
            .last()
            .is_some_and(|last| last.reading.requests < reading.requests)
        {
            let tiles = tiles(MOST_TILES);
            self.frames.push(Frame { reading, tiles });
        }
    }

    /// The tables `film_frames`, `film` and `film_frontiers`; `frontiers` are the names of the drive's frontiers, `timed` tells whether
    /// there are times.
    pub fn tables(&self, frontiers: Vec<String>, timed: bool) -> [Table; 3] {
        let readings: Vec<&Reading> = self.frames.iter().map(|frame| &frame.reading).collect();
        let of = |value: fn(&Reading) -> u64| Column::U64(readings.iter().map(|reading| value(reading)).collect());
        let waf = std::iter::once(f64::NAN).chain(readings.iter().zip(readings.iter().skip(1)).map(|(a, b)| {
            let programmed = b.all_programmed() - a.all_programmed();
            match b.host_writes - a.host_writes {
                0 => f64::NAN,
                written => programmed as f64 / written as f64,
            }
        }));
        let time = |reading: &&Reading| if timed { reading.time_ns as f64 } else { f64::NAN };
        let frames = Table::new("film_frames")
            .with("frame", Column::U64((0..readings.len() as u64).collect()))
            .with("requests", of(|reading| reading.requests))
            .with("tick_units", of(|reading| reading.tick))
            .with("time_ns", Column::F64(readings.iter().map(time).collect()))
            .with("waf", Column::F64(waf.collect()))
            .with("free_units", of(|reading| u64::from(reading.free_units)))
            .with("collections", of(|reading| reading.collections));
        let rows = || {
            let numbered = self.frames.iter().enumerate();
            numbered.flat_map(|(frame, of)| of.tiles.iter().map(move |tile| (frame as u64, tile)))
        };
        let count = |value: &dyn Fn(&Tile) -> u64| Column::U64(rows().map(|(_, tile)| value(tile)).collect());
        let mut film = Table::new("film")
            .with("frame", Column::U64(rows().map(|(frame, _)| frame).collect()))
            .with("ru", count(&|tile| u64::from(tile.first)));
        for (state, name) in ["free", "open", "closed", "collecting", "bad"].into_iter().enumerate() {
            film = film.with(name, count(&|tile| u64::from(tile.states[state])));
        }
        let or_nan = |value: fn(&Tile) -> Option<f64>| {
            Column::F64(rows().map(|(_, tile)| value(tile).unwrap_or(f64::NAN)).collect())
        };
        let film = film
            .with("valid_units", count(&|tile| u64::from(tile.valid_units)))
            .with("frontier", or_nan(|tile| tile.frontier.map(f64::from)))
            .with("age_units", or_nan(|tile| tile.age_units))
            .with("erases", count(&|tile| tile.erases));
        let names = Table::new("film_frontiers")
            .with("frontier", Column::U64((0..frontiers.len() as u64).collect()))
            .with("name", Column::Text(frontiers.into_iter().map(Into::into).collect()));
        [frames, film, names]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(requests: u64) -> Reading {
        let mut reading = Reading {
            requests,
            tick: requests,
            host_writes: requests,
            ..Reading::default()
        };
        reading.programmed[1] = 3 * requests;
        reading
    }

    fn tiles(requests: u64) -> Vec<Tile> {
        let tile = |first| Tile {
            first,
            erases: requests,
            ..Tile::default()
        };
        vec![tile(0), tile(1)]
    }

    /// However long the run: at most 240 frames and no fewer than half of it, each with its own tiles, evenly apart, the last one the end.
    #[test]
    fn a_long_run_has_few_frames_evenly_apart() {
        for end in [1_000_000, 30_000, 65] {
            let mut film = Film::new(at(0), tiles(0));
            (1..=end).for_each(|requests| film.look(at(requests), |_| tiles(requests)));
            film.finish(at(end), |_| tiles(end));
            let [frames, rows, _] = film.tables(vec!["host".to_owned()], false);
            let (Some(Column::U64(requests)), Some(Column::F64(waf))) =
                (frames.column("requests"), frames.column("waf"))
            else {
                panic!("columns are missing");
            };
            assert!(frames.rows() <= MOST_FRAMES + 1 && (end < 30_000 || frames.rows() > MOST_FRAMES / 2));
            assert_eq!((requests[0], requests[requests.len() - 1]), (0, end));
            let steps: Vec<u64> = requests.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(
                steps[..steps.len() - 1].iter().all(|&step| step == steps[0]),
                "{steps:?}"
            );
            assert!(waf[0].is_nan() && waf[1..].iter().all(|&waf| waf == 3.0), "{waf:?}");
            let Some(Column::U64(erases)) = rows.column("erases") else {
                panic!("no column `erases`");
            };
            let twice: Vec<u64> = requests.iter().flat_map(|&requests| [requests; 2]).collect();
            assert_eq!(erases, &twice, "a frame has the tiles of another");
        }
    }
}
