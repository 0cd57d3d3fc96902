//! The drive files that come with the program: `drives/*.toml`, one line each.

/// A drive file built into the program.
pub struct Preset {
    pub name: &'static str,
    pub text: &'static str,
}

impl Preset {
    /// The `description` of the file.
    pub fn description(&self) -> String {
        let table = self.text.parse::<toml::Table>().ok();
        let description = table
            .as_ref()
            .and_then(|table| table.get("drive")?.get("description")?.as_str());
        description.unwrap_or_default().to_owned()
    }
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../../../../drives/", $name, ".toml")) }),+]
    };
}

/// All presets: teaching and theory, benches, current drives, peers, the source documents' devices.
pub const PRESETS: &[Preset] = presets![
    "tiny",
    "small",
    "desk",
    "theory-10k",
    "bench-64g",
    "bench-64g-4u",
    "bench-16g",
    "bench-16g-4u",
    "tlc-1tb",
    "qlc-4tb",
    "mqsim-default",
    "mqsim-matrix-a-4k",
    "mqsim-matrix-a-16k",
    "mqsim-matrix-b-4k",
    "mqsim-matrix-b-16k",
    "ssdsim",
    "flashsim",
    "flashsim-dftl",
    "disksim-slc",
    "disksim-mlc",
    "cpftl-sim",
    "cpftl-emu",
    "rrssd",
    "pblru",
    "pm963",
    "finededup",
];

/// Every parameter with its meaning, unit, range and default.
pub const REFERENCE: &str = include_str!("../../../../drives/reference.toml");

pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

pub fn names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}
