//! Records a command with the exact tracer: `exact FOLDER COMMAND …`; content ids with `FTLAB_RECORD_CONTENT=1` (and
//! `FTLAB_RECORD_CHUNK=256`), reads with `FTLAB_RECORD_READS=1`, no signatures with `FTLAB_RECORD_SIGNATURE=none`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), ftlab_core::Error> {
    use ftlab_record::spool;
    use ftlab_recorder::exact;
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .ok_or_else(|| ftlab_core::Error::input("exact FOLDER COMMAND …"))?;
    let command: Vec<_> = arguments.collect();
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
    let options = exact::Options {
        content: set(spool::ENV_CONTENT),
        chunk: spool::chunk_named(
            std::env::var_os(spool::ENV_CHUNK)
                .unwrap_or_default()
                .as_encoded_bytes(),
        ),
        reads: set(spool::ENV_READS),
        signatures: std::env::var_os(spool::ENV_SIGNATURE).is_none_or(|value| value != "none"),
    };
    let traced = exact::record(&command, std::path::Path::new(&folder), &options, &|_| {})?;
    std::process::exit(traced.status.code().unwrap_or(1));
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
