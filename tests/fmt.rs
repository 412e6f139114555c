//! `iverson fmt`: files, folders, stdin, and what cannot be read.

mod folder;

use folder::Folder;

const UNTIDY: &str = "def f(x:f64)->f64=x*x -- squared\n";
const TIDY: &str = "def f(x: f64) -> f64 = x * x -- squared\n";

#[test]
fn files_are_written_in_place() {
    let f = Folder::with(UNTIDY);
    let done = f.run(&["fmt", "p.iv"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    assert_eq!(f.read("p.iv"), TIDY);
    assert_eq!(f.files(), 1);
    // Formatted files are not written again.
    let before = std::fs::metadata(f.path("p.iv")).unwrap().modified().unwrap();
    assert_eq!(f.run(&["fmt", "p.iv"]).code, 0);
    assert_eq!(std::fs::metadata(f.path("p.iv")).unwrap().modified().unwrap(), before);
}

#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::PermissionsExt;
    let f = Folder::with(UNTIDY);
    std::fs::set_permissions(f.path("p.iv"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("p.iv", f.path("link.iv")).unwrap();
    assert_eq!(f.run(&["fmt", "link.iv"]).code, 0);
    assert!(f.path("link.iv").is_symlink());
    assert_eq!(f.read("p.iv"), TIDY);
    assert_eq!(std::fs::metadata(f.path("p.iv")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn check_names_files_and_writes_nothing() {
    let f = Folder::with(UNTIDY);
    f.write("tidy.iv", TIDY);
    let done = f.run(&["fmt", "--check", "p.iv", "tidy.iv"]);
    assert_eq!((done.code, done.out.as_str()), (1, "p.iv\n"));
    assert_eq!(f.read("p.iv"), UNTIDY);
    assert_eq!(f.run(&["fmt", "--check", "tidy.iv"]).code, 0);
    assert_eq!(f.run_on(UNTIDY, &["fmt", "--check", "-"]).code, 1);
    assert_eq!(f.run_on(TIDY, &["fmt", "--check", "-"]).code, 0);
}

#[test]
fn stdin_goes_to_stdout() {
    let f = Folder::with("");
    assert_eq!(f.run_on(UNTIDY, &["fmt", "-"]).out, TIDY);
    f.run_on("def f(", &["fmt", "-"]).fails(&["stdin:1:"]);
}

#[test]
fn folders_are_walked() {
    let f = Folder::with(UNTIDY);
    std::fs::create_dir_all(f.path("a/b")).unwrap();
    f.write("a/b/q.iv", UNTIDY);
    f.write("a/b/q.txt", UNTIDY);
    assert_eq!(f.run(&["fmt", "."]).code, 0);
    assert_eq!((f.read("p.iv").as_str(), f.read("a/b/q.iv").as_str(), f.read("a/b/q.txt").as_str()), (TIDY, TIDY, UNTIDY));
    std::fs::create_dir(f.path("empty")).unwrap();
    f.run(&["fmt", "empty"]).fails(&["no program (*.iv) in empty"]);
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    let f = Folder::with(UNTIDY);
    f.write("bad.iv", "def f(x: f64) -> f64 = x +\n");
    f.run(&["fmt", "bad.iv"]).fails(&["bad.iv:1:"]);
    f.run(&["fmt", "none.iv"]).fails(&["cannot read none.iv"]);
    // The others are formatted all the same.
    let done = f.run(&["fmt", "bad.iv", "p.iv"]);
    assert_eq!(done.code, 1);
    assert_eq!((f.read("bad.iv").as_str(), f.read("p.iv").as_str()), ("def f(x: f64) -> f64 = x +\n", TIDY));
    assert_eq!(f.run(&["fmt"]).code, 2);
}

#[test]
fn a_file_that_cannot_be_written_keeps_its_text() {
    use std::os::unix::fs::PermissionsExt;
    let f = Folder::with(UNTIDY);
    std::fs::set_permissions(f.0.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let done = f.run(&["fmt", "p.iv"]);
    std::fs::set_permissions(f.0.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser writes everywhere.
    if done.code != 0 {
        done.fails(&["cannot write p.iv"]);
        assert_eq!(f.read("p.iv"), UNTIDY);
    }
}
