use std::fs::{File, Metadata, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use tempfile::Builder;

/// Fills a file that appears complete or not at all: written beside its place, then moved there.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    replace(path, fill).with_context(|| format!("cannot write `{}`", path.display()))
}

fn replace(path: &Path, fill: impl FnOnce(&mut File) -> anyhow::Result<()>) -> anyhow::Result<()> {
    // A link stays one: what it leads to is replaced.
    let place = std::fs::canonicalize(path).unwrap_or(path.to_owned());
    let there = std::fs::metadata(&place).ok();
    anyhow::ensure!(there.as_ref().is_none_or(Metadata::is_file), "not a regular file");
    let folder =
        place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What the place had before, or what any new file gets.
    let permissions = there.map_or(Permissions::from_mode(0o666), |there| there.permissions());
    let in_folder = Builder::new().permissions(permissions).tempfile_in(folder);
    let mut file = in_folder.map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
    fill(file.as_file_mut())?;
    file.persist(&place).map_err(|e| anyhow::anyhow!("{}", e.error.kind()))?;
    Ok(())
}

/// Fills a new folder that appears complete or not at all: written beside its place, then moved
/// there.
pub(crate) fn write_folder(
    path: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let create = || {
        anyhow::ensure!(std::fs::symlink_metadata(path).is_err(), "it is there already");
        let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let beside = Builder::new()
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent.unwrap_or(Path::new(".")))
            .map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
        fill(beside.path())?;
        std::fs::rename(beside.path(), path).map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
        // What is moved is nobody's to delete.
        let _moved = beside.keep();
        Ok(())
    };
    create().with_context(|| format!("cannot write the folder `{}`", path.display()))
}
