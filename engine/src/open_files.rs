//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system lets a process do itself: sources of SSTs, sockets and the log share it.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(?current, ?maximum, "open files: limit raised"),
        Err(error) => tracing::debug!(?current, ?maximum, %error, "open files: limit stays"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let maximum = getrlimit(Resource::Nofile).maximum.expect("a limit");
        let lower = Rlimit {
            current: Some(maximum - 1),
            maximum: Some(maximum),
        };
        setrlimit(Resource::Nofile, lower).expect("lowered");
        raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, Some(maximum));
    }
}
