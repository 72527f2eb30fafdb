//! A directory that goes away, and the binary run in it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The example file of the repository.
pub const ZONES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/zones.tsv");

/// A place for a database `db` and files beside it; commands run in it.
pub struct Place {
    directory: TempDir,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        Place {
            directory: TempDir::new().expect("a temporary directory"),
        }
    }

    /// A place whose `db` has the table `zones`.
    pub fn with_zones() -> Place {
        let place = Place::new();
        place
            .run(&["load", "db", "zones", ZONES, "--key", "zone"])
            .succeeded();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Place {
        std::fs::write(self.path(name), bytes).expect("a file");
        self
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
        command
            .args(args)
            .current_dir(self.directory.path())
            .env_remove("CARGO_MANIFEST_DIR");
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        self.run_with_input(args, b"")
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Said {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("piped");
        // A command that does not read its input may be gone already.
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The rows of a table, as CSV without its header.
    pub fn rows(&self, table: &str) -> Vec<String> {
        let said = self
            .run(&["scan", "db", table, "--output", "csv"])
            .succeeded();
        said.lines().skip(1).map(str::to_string).collect()
    }
}

impl Said {
    /// Expects exit code 0; returns standard output.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Expects an exit code and all of these words in the message.
    #[track_caller]
    pub fn failed(self, code: i32, words: &[&str]) -> Said {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
        assert!(!self.err.contains("panicked"), "{self:?}");
        self
    }
}
