use std::fs::{File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::unfinished::Unfinished;

/// Refuses files that cannot be written, and two that are the same, before any work is done for
/// them; each by the option that asks for it.
pub(crate) fn check_files(files: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
    let mut places: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in files {
        let Some(path) = path else { continue };
        let place = place(path).and_then(|place| beside(&place).map(|_| place));
        let place = place.with_context(|| cannot_write(path))?;
        if let Some((other, _)) = places.iter().find(|(_, known)| *known == place) {
            anyhow::bail!("{other} and {option} name the same file");
        }
        places.push((option, place));
    }
    Ok(())
}

/// The same for a new folder.
pub(crate) fn check_folder(path: &Path) -> anyhow::Result<()> {
    folder_beside(path).map(drop).with_context(|| cannot_write_folder(path))
}

/// Fills a file that appears complete or not at all: written beside its place, then moved there.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    replace(path, fill).with_context(|| cannot_write(path))
}

/// Fills a new folder that appears complete or not at all: written beside its place, then moved
/// there.
pub(crate) fn write_folder(
    path: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    create(path, fill).with_context(|| cannot_write_folder(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

fn cannot_write_folder(path: &Path) -> String {
    format!("cannot write the folder `{}`", path.display())
}

/// Where a file is to be.
fn place(path: &Path) -> anyhow::Result<PathBuf> {
    // A link stays one: what it leads to is replaced.
    if let Ok(place) = std::fs::canonicalize(path) {
        anyhow::ensure!(
            std::fs::metadata(&place).is_ok_and(|it| it.is_file()),
            "not a regular file"
        );
        return Ok(place);
    }
    anyhow::ensure!(!path.is_symlink(), "a link that leads nowhere");
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    let name = name.context("this names no file")?;
    let folder =
        std::fs::canonicalize(parent(path)).map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
    Ok(folder.join(name))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An empty file in the folder of the place.
fn beside(place: &Path) -> anyhow::Result<Unfinished<NamedTempFile>> {
    // What the place had before, or what any new file gets.
    let there = std::fs::metadata(place).ok();
    let permissions = there.map_or(Permissions::from_mode(0o666), |there| there.permissions());
    let make = || Builder::new().permissions(permissions).tempfile_in(parent(place));
    Unfinished::new(make).map_err(|e| anyhow::anyhow!("{}", e.kind()))
}

/// An empty folder beside one that is not there.
fn folder_beside(path: &Path) -> anyhow::Result<Unfinished<TempDir>> {
    anyhow::ensure!(std::fs::symlink_metadata(path).is_err(), "it is there already");
    let permissions = Permissions::from_mode(0o777);
    let make = || Builder::new().permissions(permissions).tempdir_in(parent(path));
    Unfinished::new(make).map_err(|e| anyhow::anyhow!("{}", e.kind()))
}

fn replace(path: &Path, fill: impl FnOnce(&mut File) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let place = place(path)?;
    let mut beside = beside(&place)?;
    fill(beside.made.as_file_mut())?;
    beside.made.persist(&place).map_err(|e| anyhow::anyhow!("{}", e.error.kind()))?;
    Ok(())
}

fn create(path: &Path, fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let beside = folder_beside(path)?;
    fill(beside.made.path())?;
    std::fs::rename(beside.made.path(), path).map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
    // What is moved is nobody's to delete.
    let _moved = beside.made.keep();
    Ok(())
}
