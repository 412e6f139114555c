//! Archives of named NumPy arrays (`.npz`): zip files of `.npy` files, stored or deflated.

use super::{Array, Error, npy};
use crate::unfinished;
use npyz::npz::NpzArchive;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Arrays are read when they are asked for, so that a large or odd one that nobody wants does not matter.
pub struct Archive {
    path: PathBuf,
    archive: NpzArchive<BufReader<File>>,
}

impl Archive {
    pub fn open(path: &Path) -> Result<Archive, Error> {
        let file = File::open(path).map_err(|e| npy::cannot_read(path, &e))?;
        let archive = NpzArchive::new(BufReader::new(file))
            .map_err(|e| Error::new(format!("{} is not a NumPy archive or is damaged: {e}", path.display())))?;
        Ok(Archive { path: path.to_path_buf(), archive })
    }
    pub fn path(&self) -> &Path {
        &self.path
    }
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.archive.array_names().map(str::to_string).collect();
        names.sort();
        names
    }
    /// `None` if there is no such array.
    pub fn read(&mut self, name: &str) -> Result<Option<Array>, Error> {
        self.entry(name, |file| npy::read(file))
    }
    /// A word. It is an error if there is none of that name.
    pub fn read_text(&mut self, name: &str) -> Result<String, Error> {
        let path = self.path.display().to_string();
        self.entry(name, |file| npy::read_text(file))?.ok_or_else(|| Error::new(format!("no `{name}` in {path}")))
    }
    fn entry<T>(&mut self, name: &str, read: impl FnOnce(&mut zip::read::ZipFile<'_>) -> Result<T, Error>) -> Result<Option<T>, Error> {
        let entry = npyz::npz::file_name_from_array_name(name);
        if !self.archive.array_names().any(|n| n == name) {
            return Ok(None);
        }
        let about = |e: Error, path: &Path| e.about(format!("{}, array `{name}`", path.display()));
        let mut file = match self.archive.zip_archive().by_name(&entry) {
            Ok(file) => file,
            Err(e) => return Err(about(Error::new(format!("the archive is damaged: {e}")), &self.path)),
        };
        let array = read(&mut file).map_err(|e| about(e, &self.path))?;
        // The checksum is compared only at the end of the entry.
        match std::io::copy(&mut file, &mut std::io::sink()) {
            Ok(_) => Ok(Some(array)),
            Err(e) => Err(about(Error::new(format!("the archive is damaged: {e}")), &self.path)),
        }
    }
}

/// What an archive has under a name.
pub enum Entry<'a> {
    Array(&'a Array),
    /// A word, as NumPy's `bytes`.
    Text(&'a str),
}

pub fn write_file<'a>(path: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<(), Error> {
    write_entries(path, arrays.into_iter().map(|(name, array)| (name, Entry::Array(array))))
}

/// Writes an archive whole or not at all: into a new file beside it, which then takes its name.
pub fn write_entries<'a>(path: &Path, entries: impl IntoIterator<Item = (&'a str, Entry<'a>)>) -> Result<(), Error> {
    let failed = |reason: String| Error::new(format!("cannot write {}: {reason}", path.display()));
    let io_failed = |e: &std::io::Error| failed(npy::reason(e));
    let zip_failed = |e: zip::result::ZipError| match e {
        zip::result::ZipError::Io(e) => io_failed(&e),
        e => failed(e.to_string()),
    };
    let mut file = unfinished::File::beside(path).map_err(|e| io_failed(&e))?;
    let mut zip = zip::ZipWriter::new(BufWriter::new(file.contents()));
    let written = entries.into_iter().try_for_each(|(name, entry)| {
        let length = match entry {
            Entry::Array(array) => array.len(),
            Entry::Text(_) => 1,
        };
        // A fixed time makes equal results equal files.
        let options = zip::write::FileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(length >= 1 << 28);
        zip.start_file(npyz::npz::file_name_from_array_name(name), options).map_err(zip_failed)?;
        match entry {
            Entry::Array(array) => npy::write(array, &mut zip),
            Entry::Text(text) => npy::write_text(text, &mut zip),
        }
        .map_err(|e| io_failed(&e))
    });
    let finished = written.and_then(|()| zip.finish().map_err(zip_failed));
    // It would try once more to write what could not be written, and complain by itself.
    std::mem::forget(zip);
    finished?.flush().map_err(|e| io_failed(&e))?;
    file.finish().map_err(|e| io_failed(&e))
}

#[cfg(test)]
mod tests {
    use super::super::Data;
    use super::*;

    #[test]
    fn archives_read_back_and_damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let x = Array::f64(vec![2, 30], (0..60).map(f64::from).collect());
        let k = Array::new(vec![], Data::I64(vec![7]));
        write_file(&path, [("x", &x), ("grad.k", &k)]).unwrap();
        let mut archive = Archive::open(&path).unwrap();
        assert_eq!(archive.names(), ["grad.k", "x"]);
        assert_eq!(archive.read("x").unwrap(), Some(x));
        assert_eq!(archive.read("grad.k").unwrap(), Some(k));
        assert_eq!(archive.read("y").unwrap(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        let bytes = std::fs::read(&path).unwrap();
        let bad = folder.path().join("bad.npz");
        for end in (0..bytes.len()).step_by(7) {
            std::fs::write(&bad, &bytes[..end]).unwrap();
            assert!(Archive::open(&bad).and_then(|mut a| a.read("x")).is_err(), "{end}");
        }
        // A changed element is always noticed; a change elsewhere never panics.
        let first = bytes.windows(16).position(|w| w[..8] == 0f64.to_le_bytes() && w[8..] == 1f64.to_le_bytes()).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            std::fs::write(&bad, &changed).unwrap();
            let read = Archive::open(&bad).and_then(|mut a| a.read("x"));
            assert!(!(first..first + 480).contains(&at) || read.is_err(), "{at}");
        }
    }

    #[test]
    fn compressed_archives_and_odd_entries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        let x = Array::f64(vec![1000], vec![0.5; 1000]);
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        let deflated = zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        zip.start_file("x.npy", deflated).unwrap();
        npy::write(&x, &mut zip).unwrap();
        zip.start_file("readme.txt", deflated).unwrap();
        zip.write_all(b"no array").unwrap();
        zip.start_file("bad.npy", deflated).unwrap();
        zip.write_all(b"no array either").unwrap();
        zip.finish().unwrap();
        let mut archive = Archive::open(&path).unwrap();
        assert_eq!(archive.names(), ["bad", "x"]);
        assert_eq!(archive.read("x").unwrap(), Some(x));
        assert!(archive.read("bad").unwrap_err().message.ends_with("c.npz, array `bad`: this is not a NumPy array"));
    }

    #[test]
    fn failures_name_the_file_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let k = Array::new(vec![], Data::I64(vec![7]));
        let missing = folder.path().join("no/such/a.npz");
        assert!(write_file(&missing, [("k", &k)]).unwrap_err().message.contains("there is no folder"));
        assert!(write_file(folder.path(), [("k", &k)]).unwrap_err().message.contains("it is a folder"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert!(write_file(Path::new("/dev/null"), [("k", &k)]).unwrap_err().message.contains("it is no plain file"));
            let inner = folder.path().join("inner");
            std::fs::create_dir(&inner).unwrap();
            let (real, link) = (inner.join("real.npz"), folder.path().join("link.npz"));
            std::fs::write(&real, "old").unwrap();
            std::os::unix::fs::symlink(&real, &link).unwrap();
            write_file(&link, [("k", &k)]).unwrap();
            assert!(link.is_symlink());
            assert_eq!(Archive::open(&real).unwrap().names(), ["k"]);
            assert_ne!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o044, 0);
            std::fs::remove_file(link).unwrap();
            std::fs::remove_dir_all(inner).unwrap();
        }
        assert!(Archive::open(&missing).err().unwrap().message.ends_with("a.npz: no such file"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
