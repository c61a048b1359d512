//! The book builds without a warning, and its links and those of the top-level pages lead somewhere.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::{File, read_dir, read_to_string};
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use pulldown_cmark::{Event, Options, Parser, Tag};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Builds the book in a folder; mdbook tells its warnings through `tracing`.
fn build(folder: &Path) {
    let log = folder.join("log");
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_ansi(false)
        .with_writer(File::create(&log).unwrap())
        .init();
    let mut book = MDBook::load(root().join("docs")).unwrap();
    book.config.build.build_dir = folder.join("book");
    book.build().unwrap();
    assert_eq!(read_to_string(log).unwrap(), "", "warnings of mdbook");
}

/// The targets of a page's links and pictures, and the paths of the repository in its text.
fn targets(text: &str) -> (Vec<String>, Vec<String>) {
    const FOLDERS: [&str; 7] =
        [".ci/", "benches/", "crates/", "docs/", "examples/", "tests/", "topologies/"];
    let (mut links, mut paths) = (vec![], vec![]);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::Code(code) if FOLDERS.iter().any(|folder| code.starts_with(folder)) => {
                let path = code.split_whitespace().next().unwrap();
                if !path.contains(['*', '{']) {
                    paths.push(path.to_owned());
                }
            }
            _ => {}
        }
    }
    (links, paths)
}

/// The fault of a link of a page, if it has one.
fn fault(page: &Path, link: &str, html: &Path) -> Option<&'static str> {
    if link.starts_with("https://") {
        return None;
    }
    let chapters = root().join("docs/src");
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    let Ok(target) = target.canonicalize() else { return Some("there is no such file") };
    let chapter = target.strip_prefix(&chapters).ok().map(|chapter| html.join(chapter));
    match (chapter.filter(|chapter| chapter.extension().is_some_and(|end| end == "md")), anchor) {
        (Some(chapter), anchor) => {
            let Ok(text) = read_to_string(chapter.with_extension("html")) else {
                return Some("the chapter is not in SUMMARY.md");
            };
            let there = anchor.is_none_or(|anchor| text.contains(&format!("id=\"{anchor}\"")));
            (!there).then_some("the chapter has no such heading")
        }
        (None, Some(_)) => Some("only chapters have known headings"),
        (None, None) if page.starts_with(&chapters) && path.ends_with(".md") => {
            Some("mdbook expects a chapter")
        }
        (None, None) => None,
    }
}

#[test]
fn it_builds_and_all_links_resolve() {
    let folder = TempDir::new().unwrap();
    build(folder.path());
    let mut pages = vec![];
    for place in [root(), root().join("docs/src")] {
        let files = read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    let mut faults = String::new();
    for page in &pages {
        let name = page.strip_prefix(root()).unwrap().display();
        let text = read_to_string(page).unwrap();
        let (links, paths) = targets(&text);
        for link in links {
            if let Some(fault) = fault(page, &link, &folder.path().join("book")) {
                faults += &format!("{name}: {link}: {fault}\n");
            }
        }
        for path in paths.iter().filter(|path| !root().join(path).exists()) {
            faults += &format!("{name}: {path}: there is no such file\n");
        }
    }
    assert_eq!(faults, "");
    // The four pages at the top, SUMMARY.md and twenty-three chapters.
    assert_eq!(pages.len(), 28);
}

#[test]
fn pages_at_the_top_are_short() {
    for (page, most) in [("README.md", 8192), ("ARCHITECTURE.md", 6144)] {
        let bytes = root().join(page).metadata().unwrap().len();
        assert!(bytes <= most, "{page} has {bytes} bytes, more than {most}");
    }
}
