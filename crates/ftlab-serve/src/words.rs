//! What of a spec is said in the server's words.

use std::path::PathBuf;

use ftlab_core::Result;
use ftlab_nbd::{Address, Export, Pace};
use ftlab_run::ServeSpec;

/// Where a drive is served unless something else is asked for.
const SOCKET: &str = "./ftlab.sock";

pub fn addresses(spec: &ServeSpec) -> Result<Vec<Address>> {
    match spec.listen.as_slice() {
        [] => Ok(vec![Address::Unix(PathBuf::from(SOCKET))]),
        given => given.iter().map(|text| text.parse()).collect(),
    }
}

pub fn pace(spec: &ServeSpec) -> Result<Pace> {
    spec.pace.parse()
}

/// The exports of a drive of so many bytes.
pub fn exports(spec: &ServeSpec, capacity: u64) -> Result<Vec<Export>> {
    let ranges = spec.exports(capacity)?.into_iter();
    Ok(ranges
        .map(|(name, offset, size)| Export { name, offset, size })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_cannot_do_is_refused_with_a_reason() {
        let parsed = |extra: &str| ServeSpec::parse(&format!(r#"{{"drive": {{"name": "tiny"}}{extra}}}"#)).unwrap();
        let error = addresses(&parsed(r#", "listen": ["http://a"]"#)).unwrap_err();
        assert!(error.to_string().contains("listen `http://a`: expected"), "{error}");
        let error = pace(&parsed(r#", "pace": "fast""#)).unwrap_err();
        assert!(error.to_string().contains("pace `fast`: expected real"), "{error}");
        assert_eq!(addresses(&parsed("")).unwrap(), [Address::Unix(SOCKET.into())]);
    }
}
