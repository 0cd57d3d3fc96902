//! The reclaim units of a drive at one moment, as tiles: one tile a unit, or a tile for neighbours where there are many.
//!
//! *Not modelled*: which units of a tile are in which state; a tile has the counts.

use ftlab_ftl::units::RuState;
use ftlab_ftl::{Backend, Frontier, Ftl};

/// States of a reclaim unit, in the order of `RuState`.
pub const STATES: usize = 5;

/// What is told of the reclaim units of a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tile {
    /// The number of its first reclaim unit.
    pub first: u32,
    /// Reclaim units by state, in the order of `RuState`.
    pub states: [u32; STATES],
    pub valid_units: u32,
    /// The frontier that fills, or has filled, most of them; of two, the lower number. `None` where all are free or retired.
    pub frontier: Option<Frontier>,
    /// Host units written since the last program of those that are full, on average. `None` where none is full.
    pub age_units: Option<f64>,
    pub erases: u64,
}

/// The tiles of a drive, at most `most`. Looks at every reclaim unit.
///
/// # Panics
/// If `most` is 0.
pub fn tiles<B: Backend>(ftl: &Ftl<B>, most: usize) -> Vec<Tile> {
    let rus = &ftl.units.rus;
    let each = rus.len().div_ceil(most).max(1);
    let valid: Vec<u32> = ftl.units.valid_counts().collect();
    let neighbours = rus.chunks(each).zip(valid.chunks(each));
    let tile = |(number, (units, valid)): (usize, (&[ftlab_ftl::units::Ru], &[u32]))| {
        let mut tile = Tile {
            first: (number * each) as u32,
            valid_units: valid.iter().sum(),
            ..Tile::default()
        };
        let (mut frontiers, mut full, mut age) = (Vec::new(), 0u32, 0.0);
        for unit in units {
            tile.states[unit.state as usize] += 1;
            tile.erases += u64::from(unit.erases);
            match unit.state {
                RuState::Free | RuState::Bad => continue,
                RuState::Open => {}
                RuState::Closed | RuState::Collecting => {
                    full += 1;
                    age += (ftl.tick - unit.last_tick) as f64;
                }
            }
            frontiers.push(unit.frontier);
        }
        tile.frontier = most_frequent(&mut frontiers);
        tile.age_units = (full > 0).then(|| age / f64::from(full));
        tile
    };
    neighbours.enumerate().map(tile).collect()
}

fn most_frequent(frontiers: &mut [Frontier]) -> Option<Frontier> {
    frontiers.sort_unstable();
    let alike = frontiers.chunk_by(|a, b| a == b);
    // Of equal ones `max_by_key` takes the last, so the lowest number comes last.
    alike.rev().max_by_key(|run| run.len()).map(|run| run[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DriveConfig;

    fn filled() -> Ftl<ftlab_ftl::Counting> {
        let config = DriveConfig::load("tiny", &[]).unwrap();
        let mut ftl = Ftl::new(config.layout.clone(), config.ftl.clone()).unwrap();
        ftl.precondition_fill();
        ftl
    }

    #[test]
    fn a_tile_a_unit_has_what_the_unit_has() {
        let ftl = filled();
        let rus = &ftl.units.rus;
        let all = tiles(&ftl, rus.len());
        assert_eq!(all.len(), rus.len());
        for (number, (tile, ru)) in all.iter().zip(rus).enumerate() {
            assert_eq!((tile.first, tile.erases), (number as u32, u64::from(ru.erases)));
            let mut states = [0; STATES];
            states[ru.state as usize] = 1;
            assert_eq!(tile.states, states);
            let full = matches!(ru.state, RuState::Closed | RuState::Collecting);
            assert_eq!(tile.age_units, full.then(|| (ftl.tick - ru.last_tick) as f64));
            assert_eq!(tile.frontier.is_some(), full || ru.state == RuState::Open);
        }
        assert_eq!(
            all.iter().map(|tile| tile.valid_units).collect::<Vec<_>>(),
            ftl.units.valid_counts().collect::<Vec<_>>()
        );
    }

    #[test]
    fn neighbours_share_a_tile_and_nothing_is_lost() {
        let ftl = filled();
        let apart = tiles(&ftl, usize::MAX);
        // Not a divisor of the number of units: the last tile is smaller.
        let most = apart.len() / 3;
        let binned = tiles(&ftl, most);
        assert!(binned.len() <= most && binned.len() * 2 > most, "{}", binned.len());
        let each = binned[1].first as usize;
        for (tile, units) in binned.iter().zip(apart.chunks(each)) {
            assert_eq!(tile.first, units[0].first);
            assert_eq!(tile.valid_units, units.iter().map(|unit| unit.valid_units).sum::<u32>());
            for state in 0..STATES {
                let of = units.iter().map(|unit| unit.states[state]).sum::<u32>();
                assert_eq!(tile.states[state], of);
            }
            let ages: Vec<f64> = units.iter().filter_map(|unit| unit.age_units).collect();
            let mean = (!ages.is_empty()).then(|| ages.iter().sum::<f64>() / ages.len() as f64);
            assert_eq!(tile.age_units, mean);
        }
    }

    #[test]
    fn the_frontier_of_most_units_is_told_and_of_two_the_lower() {
        assert_eq!(most_frequent(&mut []), None);
        assert_eq!(most_frequent(&mut [4, 2, 4]), Some(4));
        assert_eq!(most_frequent(&mut [4, 2, 2, 4, 7]), Some(2));
    }
}
