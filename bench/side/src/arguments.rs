//! The command line.

use std::path::PathBuf;

/// The peers that can be named, in the order in which they are measured.
pub(crate) const PEERS: [&str; 6] = ["xargs", "parallel", "dbos", "restate", "pg-boss", "graphile-worker"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// A few minutes instead of most of an hour.
    pub(crate) quick: bool,
    /// The peers to measure, without duplicates.
    pub(crate) peers: Vec<&'static str>,
    /// The folders with the built programs of the product and of the benchmarks.
    pub(crate) built: [PathBuf; 2],
    /// The folder `bench` of the checkout.
    pub(crate) bench: PathBuf,
}

impl Arguments {
    /// Reads the words: the three folders that `bench/run` puts first, then the user's.
    pub(crate) fn read(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let mut folder = || {
            let word = words.next();
            word.map(PathBuf::from).ok_or("this program is started by bench/run")
        };
        let (bench, built) = (folder()?, [folder()?, folder()?]);
        let (mut quick, mut named) = (false, Vec::new());
        for word in words {
            match PEERS.into_iter().find(|peer| *peer == word) {
                Some(peer) => named.push(peer),
                None if word == "--quick" => quick = true,
                None => return Err(format!("`{word}` is neither an option nor a peer")),
            }
        }
        let wanted = |peer: &&str| named.is_empty() || named.contains(peer);
        Ok(Self { quick, peers: PEERS.into_iter().filter(wanted).collect(), built, bench })
    }

    pub(crate) fn command(&self) -> String {
        let mut command = "bench/run".to_owned();
        if self.quick {
            command.push_str(" --quick");
        }
        if self.peers.len() < PEERS.len() {
            for peer in &self.peers {
                command.push(' ');
                command.push_str(peer);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Arguments, String> {
        let folders = ["bench", "target", "bench/target"];
        Arguments::read(folders.iter().chain(words).map(ToString::to_string))
    }

    #[test]
    fn without_a_name_every_peer_is_measured() {
        assert_eq!(read(&[]).map(|read| read.peers), Ok(PEERS.to_vec()));
        assert_eq!(read(&["--quick"]).map(|read| read.command()), Ok("bench/run --quick".to_owned()));
    }

    #[test]
    fn named_peers_are_measured_once_and_in_the_fixed_order() {
        let arguments = read(&["pg-boss", "xargs", "pg-boss"]);
        assert_eq!(
            arguments.map(|read| (read.quick, read.command())),
            Ok((false, "bench/run xargs pg-boss".to_owned()))
        );
    }

    #[test]
    fn a_word_that_is_no_peer_is_refused_by_name() {
        assert_eq!(read(&["celery"]).map(|_| ()), Err("`celery` is neither an option nor a peer".to_owned()));
    }
}
