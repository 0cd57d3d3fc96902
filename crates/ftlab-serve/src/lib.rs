//! The live drive: clients use the drive of a run over NBD, under the wall clock.
//!
//! # Model
//! The drive is prepared as for a run and then driven by a server (`ftlab-nbd`) in place of a workload. The outcome is that of a run,
//! with the block `serve` beside: latencies asked of the drive against those delivered, faults, power cuts, connections.
//!
//! # Not modelled
//! What a crash loses of the FTL ([`past`]).

mod past;
mod words;

use std::time::Instant;

use ftlab_core::{Result, units};
use ftlab_ftl::{Counting, Ftl};
use ftlab_nbd::store::{Discard, Memory, Store};
use ftlab_nbd::{Address, Export, Files, Options, Pace, Report, Sockets};
use ftlab_run::live::{LiveRun, Served, Watch, fault_notes};
use ftlab_run::{Members, Observer, Outcome, Precondition, ServeSpec};

/// Serves a drive until the observer ends it, or an operator does. `say` is told where it listens.
pub fn serve(
    spec: &ServeSpec,
    members: &Members,
    observer: &mut (dyn Observer + Send),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome> {
    members.carry_out(|| serve_on_this_thread(spec, members, observer, say))
}

fn serve_on_this_thread(
    spec: &ServeSpec,
    members: &Members,
    observer: &mut (dyn Observer + Send),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome> {
    let (addresses, pace) = (words::addresses(spec)?, words::pace(spec)?);
    let (run, mut ftl, mut notes) = LiveRun::new(spec, members)?;
    let config = run.config();
    let geometry = &config.layout.geometry;
    let exports = words::exports(
        spec,
        u64::from(config.ftl.logical_units) * u64::from(geometry.unit_bytes),
    )?;
    let mut watch = Watch::new(observer);
    let end = exports
        .iter()
        .map(|export| export.offset + export.size)
        .max()
        .unwrap_or(0);
    let faults = spec.own_faults()?.of_drive(geometry.total_dies())?;
    let sockets = Sockets::open(&addresses, spec.control.as_deref())?;
    let started = Instant::now();
    let mut is_fresh = false;
    let known = notes.len();
    let mut fresh = |ftl: &mut Ftl<Counting>, notes: &mut Vec<String>| {
        is_fresh = true;
        run.precondition(ftl, &mut watch, notes)
    };
    let store: Box<dyn Store> = match (&spec.image, spec.data.as_str()) {
        (Some(path), _) => Box::new(past::take_up(
            path,
            end,
            config,
            (&mut ftl, &|| run.new_ftl()),
            &mut fresh,
            &mut notes,
        )?),
        (None, "discard") => {
            fresh(&mut ftl, &mut notes)?;
            Box::new(Discard)
        }
        _ => {
            fresh(&mut ftl, &mut notes)?;
            Box::new(Memory::new(end, spec.memory_limit_bytes()?))
        }
    };
    if !is_fresh && spec.precondition != Precondition::None {
        notes.push("precondition: left out, as the drive goes on from its saved state".to_owned());
    }
    let precondition_s = started.elapsed().as_secs_f64();
    let mut live = run.start(ftl, &mut watch)?;
    let started = Instant::now();
    let options = Options {
        sockets,
        exports: exports.clone(),
        pace,
        store,
        durable: spec.durable,
        folder: spec.fuse.clone(),
        faults,
        most_connections: spec.connections as usize,
    };
    // What has become of the drive is worth knowing before somebody uses it.
    let of_the_past = notes[known..].to_vec();
    let report = ftlab_nbd::serve(&mut live, options, &mut |addresses| {
        of_the_past.iter().for_each(|note| say(&format!("note: {note}")));
        announce(spec, &exports, addresses, say)
    })?;
    notes.extend(fault_notes(&report.faults));
    notes.extend(slowness(&report, pace));
    notes.extend(unsynchronised(&report));
    let served = Served {
        clients: report.connections,
        under_clock: pace != Pace::None,
        report: report.to_json(),
        notes,
        precondition_s,
        wall_s: started.elapsed().as_secs_f64(),
    };
    let (mut outcome, ftl) = run.outcome(live, served);
    if let Some(image) = &spec.image {
        let kept = past::keep(image, config, ftl.with_backend(Counting));
        if let (Err(why), Some(notes)) = (kept, outcome.summary["notes"].as_array_mut()) {
            notes.push(format!("the state of the drive could not be saved beside its image: {why}").into());
        }
    }
    Ok(outcome)
}

/// Where the drive is, and how to attach it.
fn announce(spec: &ServeSpec, exports: &[Export], addresses: &[Address], say: &(dyn Fn(&str) + Sync)) {
    for export in exports {
        let name = match export.name.as_str() {
            "" => String::new(),
            name => format!(" `{name}`"),
        };
        for address in addresses {
            let uri = address.uri(&export.name);
            say(&format!("{} on {uri}{name}", units::show_bytes(export.size)));
            say(&format!("  nbdinfo '{uri}'"));
            say(&format!(
                "  fio --name=x --ioengine=nbd --uri='{uri}' --rw=randrw --bs=4k --iodepth=32 --size={}",
                export.size.min(64 << 20)
            ));
            say(&format!(
                "  qemu-system-x86_64 -drive file='{uri}',format=raw,if=virtio,discard=unmap"
            ));
            // The file that comes below is nearer.
            if spec.fuse.is_none() {
                say(&format!(
                    "  mkdir -p mnt; (nbdfuse -C 4 mnt/disk '{uri}' &); sleep 2; losetup -f --show --direct-io=on mnt/disk"
                ));
            }
        }
    }
    for (folder, export) in spec
        .fuse
        .iter()
        .flat_map(|folder| exports.iter().map(move |export| (folder, export)))
    {
        let file = Files::path(folder, export);
        say(&format!(
            "{} as the file {}",
            units::show_bytes(export.size),
            file.display()
        ));
        say(&format!("  losetup -f --show --direct-io=on {}", file.display()));
    }
    say(match (&spec.image, spec.data.as_str(), spec.durable) {
        (Some(_), _, true) => "data lies in the image; flushed writes survive a power loss of this machine",
        (Some(_), _, false) => "data lies in the image; acknowledged writes survive any end of this process",
        (None, "discard", _) => "data goes nowhere: reads give zeros",
        (None, _, _) => "data lies in memory: nothing survives the end of this process",
    });
    if let Some(control) = &spec.control {
        say(&format!("control: ftlab ctl {} snapshot", control.display()));
    }
    say("ready; Ctrl-C ends it");
}

/// Says so when answers came later than the drive's own latencies excuse.
fn slowness(report: &Report, pace: Pace) -> Option<String> {
    let [p50, p99] = report.late_ns();
    let asked = report.asked_mean_ns();
    (pace != Pace::None && asked > 0.0 && p50 as f64 > 0.2 * asked).then(|| {
        format!(
            "the drive was slower than it should be: half of all answers were late by {:.0} us or more, one in a hundred by {:.0}, \
             where the drive asked for {:.0} on average; a smaller load, a slower --pace, or a free core",
            p50 as f64 / 1e3,
            p99 as f64 / 1e3,
            asked / 1e3
        )
    })
}

/// Says so when the image may lack something at the end.
fn unsynchronised(report: &Report) -> Option<String> {
    let why = report.data["sync_error"].as_str()?;
    Some(format!("the image could not be synchronised at the end: {why}"))
}
