//! Saving and loading the state of a drive: the record, the units, the frontiers and the translation pages.
//!
//! A drive is saved as after a clean shutdown: the write buffer has been programmed and mapping caches are cold. What the
//! placement policy has learnt and the wear policy has counted is saved by itself; so are, on a drive that deduplicates or
//! replicates, the tables of values, what is known of parts of units, and what the policies of these roles know. All numbers are little-endian.

use std::io::{self, Read, Write};

use ftlab_core::{Lpn, RuId};

use crate::backend::{Backend, Counting, Ticket};
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::indirection::{Of, SECTIONS};
use crate::record::Target;
use crate::translation::Translation;
use crate::units::Units;

const NONE: u32 = u32::MAX;

impl<B: Backend> Ftl<B> {
    /// Programs what the write buffer holds, as a clean shutdown does.
    pub fn shut_down(&mut self) {
        while let Some((lpn, context)) = self.buffer.evict(true) {
            if !self.evict_unit(lpn, &context) {
                return;
            }
        }
        self.program_packs(Ticket::NONE);
        for place in 0..self.frontiers.open.len() {
            self.pad(place);
        }
        self.finish_jobs();
        // Nobody who loads the state knows of a journal; the checkpoint makes it needless.
        if !self.end_of_life
            && self
                .recovery
                .as_ref()
                .is_some_and(|recovery| recovery.journal().next().is_some())
        {
            self.checkpoint();
        }
    }
}

impl Ftl<Counting> {
    /// Writes the state; call [`Ftl::shut_down`] first.
    pub fn save(&mut self, out: &mut dyn Write) -> io::Result<()> {
        put_u64(out, self.tick)?;
        put_all(out, &self.record.map)?;
        put_all(out, &self.record.owners)?;
        for word in self.record.validity() {
            put_u64(out, *word)?;
        }
        self.units.save(out)?;
        for open in &self.frontiers.open {
            put_u32(out, if open.ru == NO_RU { NONE } else { open.ru.0 })?;
            put_u32(out, if open.ru == NO_RU { 0 } else { open.next })?;
        }
        self.translation.save(out)?;
        let (opened, (ticks, swept)) = self.placing.parts();
        opened.iter().try_for_each(|&tick| put_u64(out, tick))?;
        put_u32(out, ticks.len() as u32)?;
        put_all(out, ticks)?;
        put_u64(out, *swept)?;
        let learnt = self.placement.save();
        put_bytes(out, &learnt)?;
        put_bytes(out, self.config.wear.name.as_bytes())?;
        put_bytes(out, &self.wear.save())?;
        if self.roles.is_none() {
            return Ok(());
        }
        self.save_values(out)
    }

    /// What lies behind values and rows, and what the policies of these know.
    fn save_values(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(parts) = &self.parts {
            put_bytes(out, &parts.save())?;
        }
        for section in self.indirection.sections() {
            put_u32(out, section.len() as u32)?;
            put_all(out, &section)?;
        }
        let of_dedup = self.roles.dedup.as_ref().map(|policy| policy.save());
        let of_replication = self.roles.replication.as_ref().map(|policy| policy.save());
        put_bytes(out, &of_dedup.unwrap_or_default())?;
        put_bytes(out, &of_replication.unwrap_or_default())?;
        put_u64(out, self.roles.idle_at.unwrap_or(u64::MAX))?;
        put_u64(out, self.roles.merge_at.unwrap_or(u64::MAX))
    }

    fn load_values(&mut self, input: &mut dyn Read) -> io::Result<()> {
        if let Some(parts) = &mut self.parts {
            let loaded = parts.load(&get_bytes(input)?, self.config.logical_units);
            loaded.map_err(|fault| wrong(format!("parts of units: {fault}")))?;
        }
        let mut sections: [Vec<u32>; SECTIONS] = Default::default();
        for section in &mut sections {
            let length = get_u32(input)? as usize;
            // Four counts a value or row are the most.
            let most = u64::from(self.roles.most_values(&self.layout)) + u64::from(self.roles.most_rows(&self.config));
            if length as u64 > 4 * most {
                return Err(wrong(format!("a table of values with {length} numbers")));
            }
            *section = get_many(input, length)?;
        }
        let values = self.indirection.restore(sections);
        values.map_err(|fault| wrong(format!("values: {fault}")))?;
        let places = self.indirection.slots().find(|slot| slot.0 >= self.layout.slots());
        if let Some(slot) = places {
            return Err(wrong(format!("a value at {slot:?}, beyond the drive")));
        }
        for lpn in (0..self.config.logical_units).map(Lpn) {
            let is_there = match self.record.entry(lpn).target() {
                Target::Unmapped | Target::Slot(_) => true,
                Target::Vpn(vpn) => self.indirection.is_used(vpn),
                Target::Chunks(row) => self.indirection.row_in_use(row).is_some(),
            };
            if !is_there {
                return Err(wrong(format!(
                    "{lpn:?} is mapped to a value or row that does not exist"
                )));
            }
        }
        let (of_dedup, of_replication) = (get_bytes(input)?, get_bytes(input)?);
        if let Some(policy) = &mut self.roles.dedup {
            policy
                .load(&of_dedup)
                .map_err(|fault| wrong(format!("dedup policy: {fault}")))?;
        }
        if let Some(policy) = &mut self.roles.replication {
            policy
                .load(&of_replication)
                .map_err(|fault| wrong(format!("replication policy: {fault}")))?;
        }
        let due = |at: u64| (at != u64::MAX).then_some(at);
        self.roles.idle_at = due(get_u64(input)?);
        self.roles.merge_at = due(get_u64(input)?);
        self.count_further();
        Ok(())
    }

    /// In checked runs: what new writes may share has the stamp of its content, and if that is not known, one of its own.
    fn stamp_contents(&mut self) {
        let Some(mut versions) = self.versions.take() else {
            return;
        };
        let known = self.roles.dedup.as_ref().map(|policy| policy.contents());
        for (of, content) in known.into_iter().flatten() {
            match of {
                Of::Lpn(lpn) if lpn.0 < self.config.logical_units => {
                    let slot = self.record.entry(lpn).as_slot();
                    slot.into_iter().for_each(|slot| versions.holds(slot, content));
                }
                Of::Vpn(vpn) if self.indirection.is_used(vpn) => {
                    let slots = self.indirection.copies_of(vpn);
                    slots.for_each(|slot| versions.holds(slot, content));
                }
                _ => {}
            }
        }
        for vpn in self.indirection.in_use() {
            let members = self.indirection.members(vpn).iter().copied();
            match self.indirection.first_slot(vpn) {
                Some(slot) if members.len() > 0 => versions.holds_gathered(slot, members),
                _ if self.indirection.gathered_in(vpn).is_none() => {
                    versions.holds_some(&self.indirection.copies_of(vpn).collect::<Vec<_>>());
                }
                _ => {}
            }
        }
        self.versions = Some(versions);
        for lpn in (0..self.config.logical_units).map(Lpn) {
            let entry = self.record.entry(lpn);
            let chunks = match entry.target() {
                Target::Chunks(row) => Some(self.chunk_stamps(self.indirection.row(row))),
                _ => None,
            };
            if let Some(versions) = &mut self.versions {
                versions.holds_some(entry.as_slot().as_slice());
                chunks.into_iter().for_each(|chunks| versions.holds_chunks(chunks));
            }
            let stamp = self.stamp_of(self.record.entry(lpn));
            if let Some(versions) = &mut self.versions {
                versions.recovered(lpn, stamp);
            }
        }
    }

    /// Reads a state saved by a drive of the same layout and policies into this new drive.
    ///
    /// # Errors
    /// An unexpected end, or numbers that are out of range. Whether the invariants hold is for [`Ftl::check`] to say;
    /// [`Ftl::resume`] makes the drive ready.
    pub fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.tick = get_u64(input)?;
        get_all(input, &mut self.record.map)?;
        get_all(input, &mut self.record.owners)?;
        for word in self.record.validity_mut() {
            *word = get_u64(input)?;
        }
        self.units.load(input)?;
        for place in 0..self.frontiers.open.len() {
            let (ru, next) = (get_u32(input)?, get_u32(input)?);
            let open = &mut self.frontiers.open[place];
            if ru == NONE {
                open.ru = NO_RU;
                continue;
            }
            if ru >= self.layout.rus || next > self.layout.slots_per_ru {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("open unit {ru} at {next}: out of range"),
                ));
            }
            (open.ru, open.base, open.next) = (RuId(ru), self.layout.first_slot(RuId(ru)).0, next);
            self.units.rus[ru as usize].place = place as u32;
        }
        self.translation.load(input)?;
        let (opened, (ticks, swept)) = self.placing.parts();
        for tick in opened {
            *tick = get_u64(input)?;
        }
        let (length, kept) = (get_u32(input)? as usize, ticks.len());
        if length != kept {
            return Err(wrong(format!(
                "times of the last write of {length} units, expected {kept}"
            )));
        }
        get_all(input, ticks)?;
        *swept = get_u64(input)?;
        self.placing.loaded(&self.record);
        let learnt = get_bytes(input)?;
        self.placement
            .load(&learnt)
            .map_err(|fault| wrong(format!("placement policy: {fault}")))?;
        let (of, counted) = (get_bytes(input)?, get_bytes(input)?);
        // A drive with another wear policy begins to count.
        if of == self.config.wear.name.as_bytes() {
            let pools = self.units.pools.len();
            let loaded = self.wear.load(&counted, pools);
            loaded.map_err(|fault| wrong(format!("wear policy: {fault}")))?;
        }
        if !self.roles.is_none() {
            self.load_values(input)?;
        }
        self.stamp_contents();
        self.tell_all_places();
        Ok(())
    }
}

impl Ftl<Counting> {
    /// Makes a loaded drive ready: nothing of its past is counted, and a recovering drive has a checkpoint.
    pub fn resume(&mut self) {
        self.settle();
    }
}

impl Translation {
    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        for table in self.tables() {
            put_u32(out, table.len() as u32)?;
            put_all(out, table)?;
        }
        Ok(())
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        for number in 0..self.tables().len() {
            let length = get_u32(input)? as usize;
            if length > 1 << 27 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a table of {length} pages"),
                ));
            }
            get_all(input, self.table_mut(number, length))?;
        }
        Ok(())
    }
}

impl Units {
    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        put_u64(out, self.total_erases)?;
        for (number, unit) in self.rus.iter().enumerate() {
            put_u64(out, unit.last_tick)?;
            put_u32(out, self.valid(RuId(number as u32)))?;
            put_u32(out, unit.erases)?;
            out.write_all(&[unit.state as u8])?;
            out.write_all(&unit.frontier.to_le_bytes())?;
        }
        for order in self.orders() {
            put_u32(out, order.len() as u32)?;
            put_all(out, &order)?;
        }
        Ok(())
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.total_erases = get_u64(input)?;
        for unit in 0..self.rus.len() {
            let last_tick = get_u64(input)?;
            let (valid, erases) = (get_u32(input)?, get_u32(input)?);
            let mut small = [0; 3];
            input.read_exact(&mut small)?;
            let frontier = Frontier::from_le_bytes([small[1], small[2]]);
            self.set_unit(unit, last_tick, valid, erases, small[0], frontier)
                .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        }
        let mut orders = Vec::new();
        for _ in 0..self.orders().len() {
            let length = get_u32(input)? as usize;
            if length > self.rus.len() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("an order of {length} units"),
                ));
            }
            let mut order = vec![0; length];
            get_all(input, &mut order)?;
            orders.push(order);
        }
        self.restore(&orders)
            .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn put_bytes(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    put_u64(out, bytes.len() as u64)?;
    out.write_all(bytes)
}

/// What a policy knows.
fn get_bytes(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let length = get_u64(input)?;
    let mut bytes = Vec::new();
    (&mut *input).take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(wrong(format!("{} of {length} bytes of a policy", bytes.len()))),
    }
}

fn put_u32(out: &mut dyn Write, value: u32) -> io::Result<()> {
    out.write_all(&value.to_le_bytes())
}

fn put_u64(out: &mut dyn Write, value: u64) -> io::Result<()> {
    out.write_all(&value.to_le_bytes())
}

/// Numbers in blocks, so that a large array is not a million small writes.
fn put_all(out: &mut dyn Write, values: &[u32]) -> io::Result<()> {
    let mut block = Vec::with_capacity(4 * 4096);
    for values in values.chunks(4096) {
        block.clear();
        values
            .iter()
            .for_each(|value| block.extend_from_slice(&value.to_le_bytes()));
        out.write_all(&block)?;
    }
    Ok(())
}

fn get_u32(input: &mut dyn Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn get_u64(input: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// So many numbers; a length that is wrong takes no more memory than there is input.
fn get_many(input: &mut dyn Read, length: usize) -> io::Result<Vec<u32>> {
    let mut values = Vec::new();
    while values.len() < length {
        let (known, more) = (values.len(), (length - values.len()).min(1 << 20));
        values.resize(known + more, 0);
        get_all(input, &mut values[known..])?;
    }
    Ok(values)
}

fn get_all(input: &mut dyn Read, values: &mut [u32]) -> io::Result<()> {
    let mut block = vec![0; 4 * 4096];
    for values in values.chunks_mut(4096) {
        let bytes = &mut block[..4 * values.len()];
        input.read_exact(bytes)?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
    Ok(())
}
