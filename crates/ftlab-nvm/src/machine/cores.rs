//! Cores that this program may use, those of a NUMA node, and threads bound to them.
//!
//! # Errors
//! A node that there is not, or that has no core that this program may use.

use std::path::Path;

use ftlab_core::{Error, Result};

/// A node that has cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub number: u32,
    pub cores: Vec<usize>,
}

const NODES: &str = "/sys/devices/system/node";

/// The node to work on, with the cores that may be used: the one asked for, or the lowest. How many nodes with such cores there are.
pub fn of_node(asked: Option<u32>) -> Result<(Node, usize)> {
    choose(nodes(Path::new(NODES)), &allowed(), asked)
}

fn choose(nodes: Vec<Node>, allowed: &[usize], asked: Option<u32>) -> Result<(Node, usize)> {
    let nodes: Vec<Node> = if nodes.is_empty() {
        // Without a list of nodes the machine is one.
        vec![Node {
            number: 0,
            cores: allowed.to_vec(),
        }]
    } else {
        nodes
    };
    let known: Vec<String> = nodes.iter().map(|node| node.number.to_string()).collect();
    let usable: Vec<Node> = nodes
        .into_iter()
        .map(|mut node| {
            node.cores.retain(|core| allowed.contains(core));
            node
        })
        .filter(|node| !node.cores.is_empty())
        .collect();
    let count = usable.len();
    let found = match asked {
        None => usable.into_iter().next(),
        Some(number) => usable.into_iter().find(|node| node.number == number),
    };
    found.map(|node| (node, count)).ok_or_else(|| {
        Error::input(format!(
            "--node {}: expected a node with cores that this program may use, of {}",
            asked.unwrap_or_default(),
            known.join(", ")
        ))
    })
}

/// Every node, lowest first; none where the system lists none.
fn nodes(root: &Path) -> Vec<Node> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut found: Vec<Node> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let text = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some(Node {
                number,
                cores: list(text.trim())?,
            })
        })
        .collect();
    found.sort_by_key(|node| node.number);
    found
}

/// Numbers of "0-3,8".
fn list(text: &str) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        out.extend(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?);
    }
    Some(out)
}

/// Cores on which the calling thread may run.
#[expect(unsafe_code, reason = "which cores a thread may use has no safe interface")]
pub fn allowed() -> Vec<usize> {
    // Proof: a set of cores is plain data for which zeros are a value; the call writes within the size it is given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    // Proof: numbers are below the size of a set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Binds the calling thread to some cores; false where the system refuses.
#[expect(unsafe_code, reason = "binding a thread has no safe interface")]
pub fn bind(cores: &[usize]) -> bool {
    // Proof: a set of cores is plain data for which zeros are a value; numbers come from such a set; the call only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores.iter().filter(|&&core| core < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_a_node_are_those_that_may_be_used() {
        let root = std::env::temp_dir().join(format!("ftlab-nvm-nodes-{:x}", std::process::id()));
        for (name, cores) in [
            ("node0", "0-2,8\n"),
            ("node1", "3-5\n"),
            ("node2", "\n"),
            ("power", "9"),
        ] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("cpulist"), cores).unwrap();
        }
        let found = nodes(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].cores, [0, 1, 2, 8]);
        let of = |asked| choose(found.clone(), &[1, 4, 5, 8], asked);
        let (first, count) = of(None).unwrap();
        assert_eq!((first.number, first.cores, count), (0, vec![1, 8], 2));
        assert_eq!(of(Some(1)).unwrap().0.cores, [4, 5]);
        for bad in [2, 3] {
            let said = of(Some(bad)).unwrap_err().to_string();
            assert!(said.contains("of 0, 1, 2"), "{said}");
        }
        assert_eq!(choose(Vec::new(), &[7], None).unwrap().0.cores, [7]);
    }

    #[test]
    fn a_thread_stays_where_it_is_bound() {
        let mine = allowed();
        let one = mine[mine.len() - 1];
        std::thread::spawn(move || {
            assert!(bind(&[one]));
            assert_eq!(allowed(), [one]);
        })
        .join()
        .unwrap();
        assert_eq!(allowed(), mine);
    }
}
