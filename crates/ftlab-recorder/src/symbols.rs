//! Names of functions for the frames of program contexts.
//!
//! # Model
//! The name that debugging information (DWARF) gives to the function at the call; without any, the symbol of the symbol tables
//! that the call lies in, also that of a file of separate debugging information found by the build id. C++ and Rust names are
//! shown as their source has them. A place in no symbol keeps no name: the nearest symbol before it would be a wrong one.
//! # Not modelled
//! Functions that were inlined into the named one; a program file that was replaced since it ran.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use ftlab_record::recording::Tables;

/// Where distributions keep separate debugging information.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// Names the frames as far as they can be.
pub fn name_frames(tables: &mut Tables) {
    for number in 0..tables.modules.len() {
        let wanted = tables.contexts.iter().flat_map(|context| &context.frames);
        if !wanted
            .into_iter()
            .any(|f| f.module as usize == number && f.name.is_empty())
        {
            continue;
        }
        let module = &tables.modules[number];
        let Some(names) = Names::load(&module.path, &module.build_id) else {
            continue;
        };
        for frame in tables.contexts.iter_mut().flat_map(|context| &mut context.frames) {
            if frame.module as usize == number && frame.name.is_empty() {
                frame.name = names.at(frame.offset).unwrap_or_default();
            }
        }
    }
}

/// What is known of one module.
struct Names {
    dwarf: Option<addr2line::Loader>,
    /// Address, size and name of functions, by address.
    functions: Vec<(u64, u64, String)>,
    /// Address of the module's first byte as its file has it.
    first: u64,
}

impl Names {
    fn load(path: &str, build_id: &str) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(bytes.as_slice()).ok()?;
        let first = file.segments().map(|segment| segment.address()).min().unwrap_or(0) / 4096 * 4096;
        let mut functions = functions(&file);
        let separate = build_id
            .split_at_checked(2)
            .map(|(head, tail)| PathBuf::from(format!("{DEBUG_FILES}/{head}/{tail}.debug")));
        let separate = separate.filter(|path| path.is_file());
        if let Some(bytes) = separate.as_ref().and_then(|path| fs::read(path).ok())
            && let Ok(file) = object::File::parse(bytes.as_slice())
        {
            functions.extend(self::functions(&file));
        }
        functions.sort();
        functions.dedup_by_key(|function| function.0);
        let dwarf = addr2line::Loader::new(separate.unwrap_or_else(|| PathBuf::from(path))).ok();
        Some(Names {
            dwarf,
            functions,
            first,
        })
    }

    /// Name of the function that a call with this return address lies in.
    fn at(&self, offset: u64) -> Option<String> {
        // The call ends where it returns to; the byte before is inside it.
        let inside = offset.checked_sub(1)?;
        // Offsets count from the module's first byte in memory.
        let address = self.first.checked_add(inside)?;
        self.dwarf_name(address).or_else(|| self.symbol(address))
    }

    fn dwarf_name(&self, address: u64) -> Option<String> {
        let mut frames = self.dwarf.as_ref()?.find_frames(address).ok()?;
        let mut name = None;
        while let Ok(Some(frame)) = frames.next() {
            // The last one is the function that the others were inlined into.
            if let Some(function) = frame.function {
                name = function.demangle().ok().map(Cow::into_owned);
            }
        }
        name
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let upto = self.functions.partition_point(|function| function.0 <= address);
        let (start, size, name) = self.functions.get(upto.checked_sub(1)?)?;
        (address - start < *size).then(|| addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned())
    }
}

fn functions(file: &object::File<'_>) -> Vec<(u64, u64, String)> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
    functions
        .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())))
        .collect()
}
