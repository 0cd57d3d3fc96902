use super::presets::{PRESETS, REFERENCE};
use super::*;
use ftlab_ftl::Ftl;

#[test]
fn every_preset_loads_and_its_resolved_form_loads_as_the_same_drive() {
    for preset in PRESETS {
        let config = DriveConfig::load(preset.name, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.name, preset.name);
        assert!(
            !config.description.is_empty() && !config.source.is_empty(),
            "{}",
            preset.name
        );
        let resolved = config.resolved_toml();
        let again = DriveConfig::parse(&resolved, "resolved", &[]).unwrap_or_else(|e| panic!("{e}\n{resolved}"));
        assert_eq!(again.resolved_toml(), resolved);
        assert_eq!(again.ftl, config.ftl);
        assert_eq!(again.timing, config.timing);
        assert_eq!(again.host, config.host);
        assert_eq!(again.layout.geometry, config.layout.geometry);
    }
    DriveConfig::parse(REFERENCE, "reference", &[]).unwrap();
}

#[test]
fn the_policies_of_every_preset_exist() {
    for preset in PRESETS {
        let config = DriveConfig::load(preset.name, &[]).unwrap();
        let ftl = &config.ftl;
        let roles = [
            (&ftl.mapping, ftlab_ftl::mapping::catalogue().names()),
            (&ftl.victim, ftlab_ftl::victim::catalogue().names()),
            (&ftl.placement, ftlab_ftl::placement::catalogue().names()),
            (&ftl.wear, ftlab_ftl::wear::catalogue().names()),
            (&ftl.allocation, ftlab_ftl::allocation::catalogue().names()),
            (&ftl.dedup, ftlab_ftl::dedup::catalogue().names()),
            (&ftl.replication, ftlab_ftl::replication::catalogue().names()),
            (&ftl.buffer.policy, ftlab_ftl::buffer::catalogue().names()),
            (&config.schedule, crate::schedule::catalogue().names()),
        ];
        for (spec, names) in roles {
            assert!(
                names.contains(&spec.name.as_str()),
                "{}: {} is none of {names:?}",
                preset.name,
                spec.name
            );
        }
    }
}

#[test]
fn small_presets_can_be_built() {
    for preset in PRESETS {
        let config = DriveConfig::load(preset.name, &[]).unwrap();
        if config.layout.slots() <= 1 << 23 {
            let built = ftlab_ftl::Ftl::new(config.layout.clone(), config.ftl.clone());
            assert!(built.is_ok(), "{}: {:?}", preset.name, built.err());
        }
    }
}

fn error_of(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    DriveConfig::parse(text, "x.toml", &sets)
        .expect_err("this drive must be refused")
        .to_string()
}

fn tiny(sets: &[&str]) -> Result<DriveConfig> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    DriveConfig::load("tiny", &sets)
}

const TINY: &str = include_str!("../../../../drives/tiny.toml");

/// `tables` with the reference's keys: the keys of the text, section by section.
fn keys_in(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().unwrap();
    let mut keys = Vec::new();
    for (section, content) in &table {
        keys.extend(content.as_table().unwrap().keys().map(|key| format!("{section}.{key}")));
    }
    keys.sort();
    keys
}

#[test]
fn the_reference_and_the_resolved_form_have_every_key() {
    let mut known: Vec<String> = read::sections()
        .iter()
        .flat_map(|section| read::keys_of(section).iter().map(move |key| format!("{section}.{key}")))
        .filter(|key| key != "ftl.logical_size")
        .collect();
    known.sort();
    assert_eq!(keys_in(REFERENCE), known);
    assert_eq!(keys_in(&tiny(&[]).unwrap().resolved_toml()), known);
    assert!(
        REFERENCE.contains("# logical_size = "),
        "the alternative to op_ratio is explained"
    );
}

#[test]
fn the_reference_shows_the_defaults() {
    let table: toml::Table = REFERENCE.parse().unwrap();
    let mut bare = toml::Table::new();
    for section in ["geometry", "timing"] {
        let mut content = table[section].as_table().unwrap().clone();
        if section == "geometry" {
            for key in ["unit", "oob", "reclaim", "superblock_dies"] {
                content.remove(key);
            }
        } else {
            content.retain(|key, _| ["cell", "read", "program", "erase", "transfer"].contains(&key));
        }
        bare.insert(section.to_owned(), toml::Value::Table(content));
    }
    let mut full = DriveConfig::parse(REFERENCE, "reference", &[]).unwrap();
    (full.name, full.description, full.source) = Default::default();
    let bare = DriveConfig::parse(&bare.to_string(), "bare", &[]).unwrap();
    assert_eq!(bare.resolved_toml(), full.resolved_toml());
}

#[test]
fn every_key_of_the_reference_has_a_comment_that_names_its_default_or_says_required() {
    let mut comment = String::new();
    for line in REFERENCE.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push_str(text);
            continue;
        }
        if line.contains('=') && !line.starts_with("name") {
            let lower = comment.to_lowercase();
            assert!(
                lower.contains("default") || lower.contains("required"),
                "{line}: {comment}"
            );
        }
        comment.clear();
    }
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
    let text = TINY.replace("pages = 64", "pagess = 64");
    let message = error_of(&text, &[]);
    let line = 1 + text.lines().position(|l| l.starts_with("pagess")).unwrap();
    assert!(message.contains(&format!("x.toml line {line}:")), "{message}");
    assert!(message.contains("did you mean `pages`?"), "{message}");
    let message = error_of(&TINY.replace("[geometry]", "[geometri]"), &[]);
    assert!(
        message.contains("unknown table `geometri`; did you mean `geometry`?"),
        "{message}"
    );
}

#[test]
fn keys_that_have_been_replaced_name_the_new_one() {
    let message = error_of(&TINY.replace("hard = 1 ", "separate_frontier = false\nhard = 1 "), &[]);
    assert!(
        message.contains("x.toml line ") && message.contains("false is survivors = \"stream\""),
        "{message}"
    );
    let message = error_of(TINY, &["gc.internal_streams=true"]);
    assert!(message.contains("true is survivors = \"internal\""), "{message}");
    let message = error_of(TINY, &["gc.survivors=none"]);
    assert!(message.contains("shared") && message.contains("internal"), "{message}");
}

#[test]
fn a_wrong_value_names_its_line_and_what_was_expected() {
    for (from, to, words) in [
        ("page_size = \"4KiB\"", "page_size = 4096", "a size such as"),
        ("read = \"25us\"", "read = \"25\"", "a time such as"),
        ("transfer = \"400MT/s\"", "transfer = \"fast\"", "a rate such as"),
        ("cell = \"SLC\"", "cell = \"PLC\"", "QLC"),
        ("blocks = 64", "blocks = -1", "`-1`: expected a whole number below 2^32"),
        (
            "blocks = 64",
            "blocks = 1.5",
            "`1.5`: expected a whole number below 2^32",
        ),
        (
            "blocks = 64",
            "blocks = \"x\"",
            "`x`: expected a whole number below 2^32",
        ),
        ("hard = 1 ", "hard = \"many\" ", "a share of the pool"),
    ] {
        assert!(TINY.contains(from), "{from}");
        let text = TINY.replace(from, to);
        let message = error_of(&text, &[]);
        let line = 1 + text.lines().position(|l| l.contains(to)).unwrap();
        assert!(
            message.contains(&format!("line {line}:")) && message.contains(words),
            "{message}"
        );
    }
    let message = error_of(&TINY.replace("blocks = 64\n", ""), &[]);
    assert!(message.contains("blocks"), "{message}");
    let message = error_of("[drive\n", &[]);
    assert!(
        message.contains("x.toml line 1:") && !message.contains('\n'),
        "{message}"
    );
    let message = error_of("", &[]);
    assert!(message.contains("`geometry`"), "{message}");
    assert!(error_of("geometry = 3\n[timing]\n", &[]).contains("write [geometry]"));
}

#[test]
fn settings_on_the_command_line_win_over_the_file() {
    let config = tiny(&[
        "ftl.op_ratio=0.28",
        "ftl.victim=d_choices:d=5",
        "geometry.pages=128",
        "timing.read=[\"30us\"]",
        "gc.soft=5%",
        "ftl.allocation=PDWC",
        "ftl.erase_limit=100",
        "host.bandwidth=none",
    ])
    .unwrap();
    assert_eq!(config.op_ratio(), 0.28);
    assert_eq!(config.ftl.victim.params["d"], 5);
    assert_eq!(config.layout.geometry.pages, 128);
    assert_eq!(config.timing.read_ns, [30_000]);
    assert_eq!((config.ftl.gc.hard, config.ftl.gc.soft), (1, 4));
    assert_eq!(config.ftl.allocation.name, "PDWC");
    assert_eq!(config.ftl.erase_limit, Some(100));
    assert_eq!(config.host.bytes_per_second, None);
    let config = tiny(&["ftl.victim=d_choices", "ftl.victim.d=3", "ftl.logical_size=32MiB"]).unwrap();
    assert_eq!(config.ftl.victim.params["d"], 3);
    assert_eq!(config.ftl.logical_units, 8192);
    let again = DriveConfig::parse(&config.resolved_toml(), "resolved", &["ftl.op_ratio=0.5".to_owned()]).unwrap();
    assert_eq!(again.op_ratio(), 0.5);
}

#[test]
fn a_wrong_setting_is_named() {
    for (set, words) in [
        ("ftl.op_ration=0.15", "did you mean `op_ratio`?"),
        ("ftll.op_ratio=0.15", "did you mean `ftl`?"),
        ("op_ratio=0.15", "table.key"),
        ("ftl.op_ratio", "table.key=value"),
        ("geometry.blocks=many", "--set geometry.blocks=many:"),
        ("ftl.op_ratio=nan", "`nan`: expected a number"),
        ("ftl.op_ratio=1979-05-27", "`1979-05-27`: expected a number"),
        ("geometry.blocks=0", "geometry.blocks = 0"),
        ("geometry.blocks.x=0", "no parameters"),
    ] {
        let message = error_of(TINY, &[set]);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn drives_that_cannot_work_are_refused_in_a_sentence() {
    for (sets, words) in [
        (&["ftl.op_ratio=0"][..], "above 0"),
        (&["ftl.logical_size=64MiB"], "below the raw size"),
        (&["ftl.logical_size=0B"], "below one mapping unit"),
        (&["gc.hard=0"], "at least one free"),
        (&["gc.hard=4", "gc.soft=2"], "below gc.hard"),
        (&["gc.hard=64"], "only 64 reclaim units"),
        (&["timing.cell=TLC", "timing.read=[\"1us\", \"2us\"]"], "3 page types"),
        (&["timing.erase=0ns"], "timing.erase is zero"),
        (&["timing.program=[]"], "timing.program has 0 times"),
        (&["timing.read=30d"], "at most"),
        (&["geometry.channels=65536", "geometry.blocks=65536"], "mapping units"),
        (&["geometry.superblock_dies=2"], "reclaim = \"superblock\""),
        (
            &["geometry.reclaim=superblock", "geometry.superblock_dies=3"],
            "divisor",
        ),
        (&["timing.suspend=both", "timing.max_suspends=0"], "max_suspends"),
        (&["host.bandwidth=0B/s"], "host.bandwidth is zero"),
        (
            &["buffer.policy=lru", "buffer.capacity=512B"],
            "at least one flash page",
        ),
        (&["lifetime.pe_cycles=0"], "lifetime"),
        (&["ftl.erase_limit=0"], "erase_limit"),
        (&["gc.step=0"], "gc.step"),
    ] {
        let message = error_of(TINY, sets);
        assert!(
            message.contains(words) && message.starts_with("x.toml: "),
            "{sets:?}: {message}"
        );
    }
    let both = TINY.replace("op_ratio = 0.15", "op_ratio = 0.15\nlogical_size = \"32MiB\"");
    assert!(error_of(&both, &[]).contains("both op_ratio and logical_size"));
}

#[test]
fn too_little_spare_says_how_much_is_missing_and_what_would_do() {
    // 4 lanes: 4 free, 2 frontiers x 4 open, 1 to collect = 13 of 256 blocks of 64 units; 2 % leave 5.
    let message = error_of(TINY, &["ftl.op_ratio=0.02"]);
    assert!(message.contains("5.0 spare reclaim units and needs 13"), "{message}");
    assert!(message.contains("8 more; ftl.op_ratio = 0.0535 would do"), "{message}");
    assert!(tiny(&["ftl.op_ratio=0.0535"]).is_ok());
    assert!(tiny(&["ftl.op_ratio=0.0534"]).is_err());
    assert!(error_of(TINY, &["geometry.blocks=3"]).contains("no op_ratio would do"));
}

#[test]
fn unknown_drives_and_missing_files_are_told_apart() {
    let message = DriveConfig::load("tinny", &[]).unwrap_err().to_string();
    assert!(message.contains("did you mean `tiny`?"), "{message}");
    let message = DriveConfig::load("no/such.toml", &[]).unwrap_err().to_string();
    assert!(message.starts_with("no/such.toml: "), "{message}");
}

#[test]
fn unloaded_latencies_are_the_sums_that_mqsim_measures() {
    // MQSim 7ec40e3, measured: rows of queue depth 1 and 4 KiB; 16 KiB adds 36.864 us of transfer and 3.744 us of link.
    for name in [
        "bench-16g",
        "mqsim-matrix-a-4k",
        "mqsim-matrix-a-16k",
        "mqsim-matrix-b-4k",
        "mqsim-matrix-b-16k",
    ] {
        let config = DriveConfig::load(name, &[]).unwrap();
        let report = theory_report(&config);
        assert_eq!(report["latency"]["read"]["total"]["mean_ns"], 63906.0, "{name}");
        assert_eq!(report["latency"]["write"]["total"]["mean_ns"], 513965.0, "{name}");
        let (t, host) = (&config.timing, &config.host);
        let read = |bytes| t.read_command_ns + t.read_ns[0] + t.transfer_ns(bytes) + host.transfer_ns(bytes) + 80;
        assert_eq!(read(16384), 104_514);
        let write =
            |bytes| t.program_command_ns + t.program_ns[0] + t.transfer_ns(bytes) + host.transfer_ns(bytes) + 68;
        assert_eq!(write(16384), 554_573);
    }
}

#[test]
fn ceilings_of_the_matrix_are_those_of_its_page() {
    let config = DriveConfig::load("mqsim-matrix-a-4k", &[]).unwrap();
    let ceilings = &theory_report(&config)["ceilings"];
    // 32 dies / 62.578 us, 8 channels / 12.578 us, and a link of 1.248 us a unit.
    let close = |value: &serde_json::Value, wanted: f64| (value.as_f64().unwrap() / wanted - 1.0).abs() < 1e-9;
    assert!(close(&ceilings["random_unit_reads"]["die_iops"], 32e9 / 62_578.0));
    assert!(close(&ceilings["random_unit_reads"]["channel_iops"], 8e9 / 12_578.0));
    assert!(close(&ceilings["random_unit_reads"]["link_iops"], 1e9 / 1_248.0));
    assert!(close(&ceilings["random_unit_reads"]["iops"], 32e9 / 62_578.0));
    assert!(close(
        &ceilings["program_pages"]["bytes_per_s"],
        32e9 / 512_649.0 * 4096.0
    ));
}

#[test]
fn sizes_are_what_the_documents_state() {
    let gib = |name: &str| {
        let figures = DriveConfig::load(name, &[]).unwrap().describe();
        (
            figures["raw_bytes"].as_u64().unwrap() >> 20,
            figures["logical_bytes"].as_u64().unwrap(),
        )
    };
    assert_eq!(gib("bench-64g").0, 64 << 10);
    assert_eq!(gib("bench-16g-4u").0, 16 << 10);
    assert_eq!(gib("mqsim-default").0, 512 << 10);
    assert_eq!(gib("mqsim-matrix-a-4k").0, 16 << 10);
    assert_eq!(gib("rrssd").0, 1 << 20);
    assert_eq!(gib("pblru").0, 4 << 10);
    assert_eq!(gib("ssdsim").0, 4 << 10);
    assert_eq!(gib("cpftl-sim").1, 4_194_304 * 4096);
    assert_eq!(gib("tlc-1tb").1 / 4096, 1_000_204_886_016 / 4096);
    for name in ["mqsim-default", "mqsim-matrix-b-16k"] {
        let figures = DriveConfig::load(name, &[]).unwrap().describe();
        assert!(
            (figures["spare_factor"].as_f64().unwrap() - 0.07).abs() < 1e-4,
            "MQSim's 7 % is of the raw units"
        );
    }
}

/// What is said of a drive by its file is what holds when it is built.
#[test]
fn a_drive_is_refused_for_its_space_before_it_is_built() {
    let sets: [&[&str]; 8] = [
        &[],
        &["gc.pool=drive", "gc.survivors=internal", "ftl.wear=static"],
        &[
            "gc.survivors=stream",
            "ftl.placement=manual:streams=2",
            "ftl.wear=static",
            "ftl.op_ratio=0.5",
        ],
        &["geometry.reclaim=superblock", "geometry.superblock_dies=2", "gc.hard=2"],
        &["ftl.mapping=dftl", "ftl.map_cache=64KiB", "gc.hard=2"],
        &[
            "ftl.mapping=dftl",
            "ftl.map_cache=64KiB",
            "gc.hard=2",
            "ftl.placement=asa:gc=oob",
            "ftl.op_ratio=0.5",
        ],
        &[
            "ftl.checkpoint=1MiB",
            "gc.hard=2",
            "ftl.placement=sepbit",
            "ftl.op_ratio=0.5",
        ],
        &["geometry.page_size=16KiB", "geometry.pages=16", "ftl.op_ratio=0.5"],
    ];
    for set in sets {
        let mut config = tiny(set).unwrap_or_else(|fault| panic!("{set:?}: {fault}"));
        let built = Ftl::new(config.layout.clone(), config.ftl.clone()).unwrap();
        assert_eq!(built.space(), config.space(), "{set:?}");
        // More for the host than there is room for.
        let left = config.space().left().unwrap();
        config.ftl.logical_units += 1 + left as u32;
        let fault = config.space().left().unwrap_err().to_string();
        let refused = Ftl::new(config.layout.clone(), config.ftl.clone()).err().unwrap();
        assert_eq!(refused.to_string(), fault, "{set:?}");
    }
    let padded = error_of(
        TINY,
        &["geometry.page_size=16KiB", "geometry.pages=16", "ftl.op_ratio=0.1"],
    );
    assert!(padded.contains("12 lost to padding"), "{padded}");
}

#[test]
fn the_description_has_both_ratios_and_the_effective_spare() {
    let config = DriveConfig::load("bench-64g", &[]).unwrap();
    let figures = config.describe();
    assert!((figures["spare_factor"].as_f64().unwrap() - 0.1).abs() < 1e-6);
    assert!((figures["op_ratio"].as_f64().unwrap() - 1.0 / 9.0).abs() < 1e-5);
    assert_eq!(figures["map_bytes"], 4 * u64::from(config.ftl.logical_units));
    // 2 free blocks and 2 half open ones of 65,536 take 5e-5 of the spare factor.
    assert!((figures["theory_waf"]["greedy"].as_f64().unwrap() - 5.083).abs() < 0.005);
    let space = config.space();
    assert_eq!((config.reserved_units(), space.open_rus, space.tables), (512, 2, 0));
}

#[test]
fn the_smallest_ratio_that_gives_the_same_size_is_shown() {
    for (raw, logical) in [
        (16384u64, 14247u64),
        (1 << 30, 999_999_937),
        (100, 99),
        (1 << 31, 1),
        (7, 3),
    ] {
        let ratio = resolve_ratio(raw, logical);
        assert_eq!((raw as f64 / (1.0 + ratio)).round() as u64, logical);
    }
    assert_eq!(resolve_ratio(16384, 14247), 0.15);
}

fn resolve_ratio(raw: u64, logical: u64) -> f64 {
    super::resolve::shortest_op_ratio(raw, logical)
}
