//! Calls that start other programs: the recording goes along.
//!
//! # Model
//! A program that is started with an environment of its own gets what this library needs added to it, if it is missing. A library
//! that is closed makes room for another.
//! # Not modelled
//! execle with an environment of its own; posix_spawn of glibc before 2.15.

use super::hooks;
use crate::environment;

hooks! {
    execve => |arguments, _, real| environment::with(arguments[2], |place| real.call(set(arguments, 2, place)));
    execvpe => |arguments, _, real| environment::with(arguments[2], |place| real.call(set(arguments, 2, place)));
    fexecve => |arguments, _, real| environment::with(arguments[2], |place| real.call(set(arguments, 2, place)));
    posix_spawn => |arguments, _, real| environment::with(arguments[5], |place| real.call(set(arguments, 5, place)));
    posix_spawnp => |arguments, _, real| environment::with(arguments[5], |place| real.call(set(arguments, 5, place)));
    dlclose => |arguments, _, real| {
        let done = real.call(arguments);
        crate::modules::forget();
        done
    };
}

fn set(mut arguments: [usize; 6], place: usize, value: usize) -> [usize; 6] {
    if let Some(argument) = arguments.get_mut(place) {
        *argument = value;
    }
    arguments
}
