use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::{Builder, NamedTempFile, TempDir};

use super::print_text;
use crate::unfinished::Unfinished;

/// Refuses files that cannot be written, and two options that name the same file, before any work
/// is done. Each file comes with its option.
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

/// The same for a new or empty folder.
pub(crate) fn check_folder(path: &Path) -> anyhow::Result<()> {
    folder_beside(path).map(drop).with_context(|| cannot_write_folder(path))
}

/// Writes a file that appears complete or not at all: a temporary file beside it is renamed.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    replace(path, fill).with_context(|| cannot_write(path))
}

/// Writes a text to a file, or prints it.
pub(crate) fn write_or_print(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, |out| Ok(out.write_all(text.as_bytes())?)),
        None => print_text(text),
    }
}

/// Writes a new or empty folder that appears complete or not at all: a temporary folder beside it is
/// renamed.
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

/// The destination of a file.
fn place(path: &Path) -> anyhow::Result<PathBuf> {
    // A symbolic link stays; its target is replaced.
    if let Ok(place) = std::fs::canonicalize(path) {
        anyhow::ensure!(
            std::fs::metadata(&place).is_ok_and(|it| it.is_file()),
            "not a regular file"
        );
        return Ok(place);
    }
    anyhow::ensure!(!path.is_symlink(), "a link that leads nowhere");
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    let name = name.context("the path has no file name")?;
    let folder = std::fs::canonicalize(parent(path)).map_err(|e| match e.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("no folder `{}`", parent(path).display()),
        kind => anyhow::anyhow!("{kind}"),
    })?;
    Ok(folder.join(name))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An empty file in the folder of the destination.
fn beside(place: &Path) -> anyhow::Result<Unfinished<Locked<NamedTempFile>>> {
    // The permissions of the file it replaces, or those of any new file.
    let there = std::fs::metadata(place).ok();
    let permissions = there.map_or(Permissions::from_mode(0o666), |there| there.permissions());
    let make = |builder: &Builder<'_, '_>, folder: &Path| builder.tempfile_in(folder);
    unfinished(place, permissions, make)
}

/// An empty folder beside a folder that is empty or does not exist yet.
fn folder_beside(path: &Path) -> anyhow::Result<Unfinished<Locked<TempDir>>> {
    anyhow::ensure!(path.file_name().is_some(), "the path has no folder name");
    let permissions = match std::fs::symlink_metadata(path) {
        Ok(there) => {
            let mut entries = path.read_dir().ok().filter(|_| there.is_dir());
            let is_empty = entries.as_mut().is_some_and(|entries| entries.next().is_none());
            anyhow::ensure!(is_empty, "it exists already and is not an empty folder");
            there.permissions()
        }
        Err(_) => Permissions::from_mode(0o777),
    };
    let make = |builder: &Builder<'_, '_>, folder: &Path| builder.tempdir_in(folder);
    unfinished(path, permissions, make)
}

/// The name of an unfinished file is `.NAME.topocoll-` and six letters.
const MARK: &str = ".topocoll-";
const LETTERS: usize = 6;

/// The most bytes of NAME in the name of an unfinished file; names have at most 255 bytes.
const NAMED: usize = 200;

/// A file or folder that is locked until it is dropped or its process ends.
struct Locked<T> {
    made: T,
    _lock: Option<File>,
}

impl<T: AsRef<Path>> AsRef<Path> for Locked<T> {
    fn as_ref(&self) -> &Path {
        self.made.as_ref()
    }
}

/// Creates a temporary file or folder beside the destination. Removes those of killed processes
/// first.
fn unfinished<T: AsRef<Path>>(
    place: &Path,
    permissions: Permissions,
    make: impl Fn(&Builder<'_, '_>, &Path) -> std::io::Result<T>,
) -> anyhow::Result<Unfinished<Locked<T>>> {
    let name = place.file_name().unwrap_or_default().as_bytes();
    let prefix = [b".", &name[..name.len().min(NAMED)], MARK.as_bytes()].concat();
    clear(parent(place), &prefix);
    let mut builder = Builder::new();
    let builder =
        builder.prefix(OsStr::from_bytes(&prefix)).rand_bytes(LETTERS).permissions(permissions);
    let locked = || loop {
        let made = make(builder, parent(place))?;
        // Without locks, a live owner is not detectable: nothing is removed.
        let lock = File::open(made.as_ref()).ok().filter(|file| file.lock().is_ok());
        // Another run may have removed it before it was locked.
        if made.as_ref().exists() {
            return Ok(Locked { made, _lock: lock });
        }
    };
    Unfinished::new(locked).map_err(|e| anyhow::anyhow!("{}", e.kind()))
}

/// Removes unfinished files and folders without a lock: their processes have ended.
fn clear(folder: &Path, prefix: &[u8]) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let letters = name.as_bytes().strip_prefix(prefix);
        let Some(letters) = letters.filter(|letters| letters.len() == LETTERS) else { continue };
        let kind = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        if !kind || !letters.iter().all(u8::is_ascii_alphanumeric) {
            continue;
        }
        let path = entry.path();
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            // A file that cannot be removed stays.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}

fn replace(path: &Path, fill: impl FnOnce(&mut File) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let place = place(path)?;
    let mut beside = beside(&place)?;
    fill(beside.made.made.as_file_mut())?;
    beside.made.made.persist(&place).map_err(|e| anyhow::anyhow!("{}", e.error.kind()))?;
    Ok(())
}

fn create(path: &Path, fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let beside = folder_beside(path)?;
    fill(beside.made.as_ref())?;
    std::fs::rename(beside.made.as_ref(), path).map_err(|e| anyhow::anyhow!("{}", e.kind()))?;
    // The renamed file must not be deleted.
    let _moved = beside.made.made.keep();
    Ok(())
}
