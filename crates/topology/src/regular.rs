//! Regular files, opened, made and read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. To open a pipe could block, and a device could be read for ever.
///
/// # Errors
/// The path leads to no file, to one that cannot be read, or to a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(&std::fs::metadata(path)?)?;
    File::open(path)
}

/// Makes a regular file, or empties one.
///
/// # Errors
/// The file cannot be made, or the path leads to a folder, a pipe or a device.
pub fn create(path: &Path) -> io::Result<File> {
    if let Ok(there) = std::fs::metadata(path) {
        check_regular(&there)?;
    }
    File::create(path)
}

fn check_regular(there: &Metadata) -> io::Result<()> {
    if there.is_file() { Ok(()) } else { Err(io::Error::other("not a regular file")) }
}

/// The text of a regular file of at most `most` bytes.
///
/// # Errors
/// The reason why there is none; `what` names files with that limit.
pub fn text_of(path: &Path, most: u64, what: &str) -> Result<String, String> {
    let file = open(path).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("longer than {most} bytes, the limit of {what}"));
    }
    String::from_utf8(bytes).map_err(|e| match e.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "not UTF-8 but UTF-16: save it as UTF-8".to_owned(),
        _ => format!("not text: {}", e.utf8_error()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_made() {
        let folder = std::env::temp_dir().join(format!("topocoll-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, &folder, Path::new("/dev/full"), Path::new("/dev/zero")] {
            for refused in [open(path), create(path)] {
                assert_eq!(refused.unwrap_err().to_string(), "not a regular file");
            }
            assert_eq!(text_of(path, 9, "texts").unwrap_err(), "not a regular file");
        }
        let file = folder.join("file");
        assert_eq!(open(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&file, "12").unwrap();
        assert_eq!(text_of(&file, 2, "texts").unwrap(), "12");
        assert_eq!(create(&file).unwrap().metadata().unwrap().len(), 0);
        for (bytes, said) in
            [(&b"\xff\xfen\0"[..], "UTF-16"), (b"\xe9n", "not text: invalid utf-8")]
        {
            std::fs::write(&file, bytes).unwrap();
            let refused = text_of(&file, 9, "texts").unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
