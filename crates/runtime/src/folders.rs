//! Where things are in the data folder, and what tells its processes apart.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rallypoint_model::ids::{GenerationId, TaskId};

/// Name of the file in a generation's folder that names the boot it was made in.
const BOOT_FILE: &str = "boot";

/// The data folder, opened.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    root: PathBuf,
    identity: String,
    boot: String,
}

impl Folders {
    pub(crate) fn open(root: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(root)?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Ok(Self {
            root: root.to_owned(),
            identity: format!("{:x}-{:x}", metadata.dev(), metadata.ino()),
            boot: boot.trim().to_owned(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the folder is still there and still the same one.
    pub(crate) fn is_there(&self) -> bool {
        std::fs::metadata(&self.root)
            .is_ok_and(|metadata| format!("{:x}-{:x}", metadata.dev(), metadata.ino()) == self.identity)
    }

    /// Folder of a generation: shim, socket, spool.
    pub(crate) fn generation(&self, id: GenerationId) -> PathBuf {
        self.root.join("gen").join(id.folder_name())
    }

    /// Work folder of a task that names none.
    pub(crate) fn scratch(&self, id: TaskId) -> PathBuf {
        self.root.join("scratch").join(id.to_string())
    }

    /// Value of the run marker: this folder, this boot, this generation. A copy
    /// of the folder has another identity and so owns none of these processes.
    pub(crate) fn marker(&self, id: GenerationId) -> String {
        format!("{}:{}:{id}", self.identity, self.boot)
    }

    /// Value of the run marker of check commands. They live no longer than the daemon that runs them, so whatever
    /// carries it when a daemon starts is a leftover of one before it.
    pub(crate) fn check_marker(&self) -> String {
        format!("{}:{}:checks", self.identity, self.boot)
    }

    /// Makes a generation's folder and notes the boot in it.
    pub(crate) fn make_generation(&self, id: GenerationId) -> std::io::Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = self.generation(id);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        std::fs::write(folder.join(BOOT_FILE), &self.boot)?;
        Ok(folder)
    }

    /// Whether the machine was started anew since a generation's folder was made.
    pub(crate) fn rebooted_since(&self, id: GenerationId) -> bool {
        std::fs::read_to_string(self.generation(id).join(BOOT_FILE)).is_ok_and(|boot| boot != self.boot)
    }
}
