//! Which programs a preloaded library is loaded into.
//!
//! # Model
//! The dynamic loader loads the library, so a program must name one, be of the library's own machine, and start with the rights of
//! who starts it: a set-user-id program's loader ignores `LD_PRELOAD`. A script is what its interpreter is.
//! # Not modelled
//! File systems mounted `nosuid`. The loader itself started as a program. Other C libraries, whose loader may refuse ours.
//! # Source
//! ld.so(8), "secure-execution mode"; the kernel's `cap_bprm_creds_from_file` (security/commoncap.c).

use crate::elf::{self, Headers};

/// Why a library is not loaded into a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It has no dynamic loader.
    Static,
    /// Not 64-bit x86.
    OtherMachine,
    /// It gets rights that who starts it does not have.
    Rights,
}

/// What the first bytes of a program tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// A loader loads it, or it is no program that we know.
    Loaded,
    /// A script, with the path of its interpreter.
    Script(&'a [u8]),
    NotLoaded(Obstacle),
}

/// Bytes of a program's start that [`content`] wants to see.
pub const HEAD: usize = 4096;
const X86_64: u16 = 62;
const INTERPRETER: u32 = 3;

/// Tells by the first bytes of a program; `head` is [`HEAD`] of them, or all.
pub fn content(head: &[u8]) -> Content<'_> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
        let mut words = line
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        return words.next().map_or(Content::Loaded, Content::Script);
    }
    if !head.starts_with(b"\x7fELF") {
        return Content::Loaded;
    }
    if !head.starts_with(b"\x7fELF\x02\x01") || elf::u16_at(head, 18) != Some(X86_64) {
        return Content::NotLoaded(Obstacle::OtherMachine);
    }
    match Headers::parse(head) {
        Some(headers) if headers.segments(INTERPRETER).next().is_none() => Content::NotLoaded(Obstacle::Static),
        _ => Content::Loaded,
    }
}

/// Who owns a program's file, and who starts it.
#[derive(Clone, Copy, Debug)]
pub struct Ownership {
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
    /// Whether the file carries capabilities.
    pub capabilities: bool,
    /// Real ids of who starts it.
    pub user: u32,
    pub users_group: u32,
}

impl Ownership {
    /// Whether the program starts with other rights than who starts it has.
    pub fn gives_rights(&self) -> bool {
        const USER: u32 = 0o4000;
        const GROUP: u32 = 0o2010;
        self.mode & USER != 0 && self.owner != self.user
            || self.mode & GROUP == GROUP && self.group != self.users_group
            || self.capabilities && self.user != 0
    }
}

/// Name of the attribute with a file's capabilities.
pub const CAPABILITIES: &core::ffi::CStr = c"security.capability";

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and program headers of these kinds.
    fn program(class: u8, machine: u16, kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * kinds.len()];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[56] = kinds.len() as u8;
        for (at, kind) in kinds.iter().enumerate() {
            bytes[64 + 56 * at..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_program_tells_by_its_start_whether_a_library_is_loaded_into_it() {
        assert_eq!(content(&program(2, 62, &[6, 3, 1])), Content::Loaded);
        assert_eq!(content(&program(2, 62, &[6, 1])), Content::NotLoaded(Obstacle::Static));
        assert_eq!(
            content(&program(1, 3, &[3, 1])),
            Content::NotLoaded(Obstacle::OtherMachine)
        );
        assert_eq!(
            content(&program(2, 183, &[3, 1])),
            Content::NotLoaded(Obstacle::OtherMachine)
        );
        assert_eq!(content(b"#! /bin/sh -e\nexit"), Content::Script(b"/bin/sh"));
        assert_eq!(content(b"echo a shell runs this"), Content::Loaded);
    }

    #[test]
    fn a_file_gives_rights_to_those_who_do_not_have_them() {
        let file = |mode, user, capabilities| Ownership {
            mode,
            owner: 0,
            group: 50,
            capabilities,
            user,
            users_group: user,
        };
        assert!(file(0o4755, 1000, false).gives_rights());
        assert!(!file(0o4755, 0, false).gives_rights());
        assert!(!file(0o755, 1000, false).gives_rights());
        assert!(file(0o2755, 0, false).gives_rights());
        // Without the group's right to execute the bit means something else.
        assert!(!file(0o2745, 0, false).gives_rights());
        assert!(file(0o755, 1000, true).gives_rights());
        assert!(!file(0o755, 0, true).gives_rights());
    }
}
