//! Files that the program writes: complete or missing, and with equal bytes each time.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use topocoll::formats::{FORMATS, Format};

fn sweep(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_topocoll");
    let fixed = ["sweep", "paragon-16x16", "--blocks", "1:4KiB"];
    Command::new(program).current_dir(folder).args(fixed).args(arguments).output().unwrap()
}

/// A machine on standard input is the one of its file.
#[test]
fn standard_input_is_a_file_of_any_kind() {
    let bounds = |name: &str, input: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_topocoll"));
        command.args(["bounds", name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // The program may end before it has read all.
        let _ = pipe.write_all(input);
        drop(pipe);
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    };
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/inputs");
    for name in ["tree-no-linkspeed.conf", "bom.hosts", "topology.yaml", "scontrol-show-block.txt"]
    {
        let path = inputs.join(name);
        let (code, of_file, _) = bounds(path.to_str().unwrap(), &[]);
        let (_, of_input, _) = bounds("-", &std::fs::read(&path).unwrap());
        let stem = format!(" on {} (", path.file_stem().unwrap().display());
        assert!(code == Some(0) && of_file.contains(&stem), "{name}");
        assert_eq!(of_input, of_file.replace(&stem, " on stdin ("), "{name}");
    }
    // Ranks on its nodes may follow.
    let path = inputs.join("topology.yaml");
    let (code, of_file, _) = bounds(&format!("{}*2", path.display()), &[]);
    let (_, of_input, _) = bounds("-*2", &std::fs::read(&path).unwrap());
    assert!(code == Some(0) && of_file.contains(" on topology*2 ("), "{of_file}");
    assert_eq!(of_input, of_file.replace(" on topology*2 (", " on stdin*2 ("));
    for (input, said) in [
        (&b"n1 slots=0\n"[..], "`0` is not a number of ranks, 1 or more\n --> stdin:1:1"),
        (b"", "the file is empty"),
        (b"\xff", "standard input is not text"),
        (&vec![b'#'; (1 << 26) + 1], "longer than 67108864 bytes, the limit of files"),
    ] {
        let (code, _, error) = bounds("-", input);
        assert!(code == Some(2) && error.contains(said), "{error}");
    }
}

#[test]
fn a_plot_has_equal_bytes_each_time_and_names_every_line() {
    let folder = TempDir::new().unwrap();
    let plot = |name| {
        assert!(sweep(folder.path(), &["--published", "--svg", name]).status.success());
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    };
    let svg = plot("one.svg");
    assert_eq!(svg, plot("two.svg"));
    for part in [
        "alltoall of 1 B to 4 KiB blocks on paragon-16x16 (torus:16x16)",
        "timing paragon-16x16",
        "steps model, topocoll 0",
        ">block size<",
        ">predicted time<",
        // Labels of the axes have their own units.
        ">1 KiB<",
        ">10 ms<",
        ">1 s<",
        "suh-shin",
        "suh-yalamanchili (published formula)",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    // Winners are named twice: in the legend, and in the band above the axes.
    let named = |name: &str| svg.matches(&format!(">{name}<")).count();
    assert_eq!(["suh-shin", "strided-rings", "bruck"].map(named), [2, 2, 1]);
}

#[test]
fn a_table_of_values_has_a_row_for_every_line_and_size() {
    let folder = TempDir::new().unwrap();
    let names = ["bruck", "suh-shin"].map(|name| ["--algorithm", name]);
    let arguments = [names.concat(), vec!["--published", "--csv", "all.csv"]].concat();
    assert!(sweep(folder.path(), &arguments).status.success());
    let mut table = csv::Reader::from_path(folder.path().join("all.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let total = column("time_seconds");
    let terms = column("startup_seconds")..=column("barrier_seconds");
    let mut kinds = [0, 0];
    for row in table.records().map(Result::unwrap) {
        let number = |i: usize| row[i].parse::<f64>().unwrap();
        let sum: f64 = terms.clone().map(number).sum();
        assert!((sum - number(total)).abs() <= 1e-12 * sum);
        kinds[usize::from(&row[column("kind")] == "published formula")] += 1;
    }
    // Two schedules and two formulas at thirteen sizes.
    assert_eq!(kinds, [2 * 13, 2 * 13]);
}

#[test]
fn a_folder_may_exist_if_it_is_empty() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str| {
        let arguments = ["schedule", "torus:4x4", "--format", "simgrid", "--out", name];
        topocoll(folder.path(), &arguments).status.code()
    };
    let entries = |name: &str| {
        let entries = std::fs::read_dir(folder.path().join(name)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for name in ["there", "kept"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("kept/mine"), "mine").unwrap();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    assert_eq!((write("new"), write("there")), (Some(0), Some(0)));
    assert_eq!(entries("new"), entries("there"));
    assert!(entries("there").len() > 16);
    assert_eq!((write("kept"), write("file"), write("there")), (Some(2), Some(2), Some(2)));
    assert_eq!(entries("kept"), ["mine"]);
    assert_eq!(entries(""), ["file", "kept", "new", "there"]);
}

#[test]
fn a_file_is_left_alone_when_the_request_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("plot.svg");
    std::fs::write(&path, "mine").unwrap();
    let free = ["--startup", "0", "--bandwidth", "0s", "--per-hop", "0", "--rearrangement", "0"];
    let free = [&free[..], &["--barrier", "0", "--svg", "plot.svg"]].concat();
    let refused = sweep(folder.path(), &free);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert!(!sweep(folder.path(), &["--svg", "nowhere/plot.svg"]).status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_pareto_front_is_drawn_and_written_with_the_settings_it_beats() {
    let folder = TempDir::new().unwrap();
    let front = |svg: &str| {
        let arguments = ["sweep", "torus:16x16", "--front", "--svg", svg, "--csv", "front.csv"];
        let program = env!("CARGO_BIN_EXE_topocoll");
        let ran = Command::new(program).current_dir(folder.path()).args(arguments).output();
        assert!(ran.unwrap().status.success());
        std::fs::read_to_string(folder.path().join(svg)).unwrap()
    };
    let svg = front("one.svg");
    assert_eq!(svg, front("two.svg"));
    for part in ["startups [steps]", "[blocks]", "direct-rings", ">front<"] {
        assert!(svg.contains(part), "{part}");
    }
    let mut table = csv::Reader::from_path(folder.path().join("front.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    let on_front = |row: &csv::StringRecord| &row[column("on_front")] == "yes";
    let number = |row: &csv::StringRecord, name| row[column(name)].parse::<f64>().unwrap();
    let front: Vec<_> = rows.iter().filter(|row| on_front(row)).collect();
    assert!(front.len() > 3 && rows.len() > 200);
    assert!(front.is_sorted_by_key(|row| number(row, "steps") as u64));
    assert!(front.is_sorted_by(|a, b| number(a, "link_blocks") >= number(b, "link_blocks")));
}

#[test]
fn a_certificate_is_written_only_for_a_schedule_that_delivers() {
    let folder = TempDir::new().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let topocoll = |arguments: &[&str]| topocoll(folder.path(), arguments);
    let verify = ["verify", "torus:4x4", "--algorithm", "suh-shin", "--certificate", "proof.txt"];
    let found = topocoll(&[&verify[..], &["--json"]].concat());
    assert!(found.status.success());
    let proof = std::fs::read_to_string(folder.path().join("proof.txt")).unwrap();
    let digest = proof.lines().last().unwrap().strip_prefix("sha256 ").unwrap();
    let report = String::from_utf8(found.stdout).unwrap();
    assert!(report.contains(&format!("\"certificate\": \"{digest}\"")), "{report}");
    let kept = format!("{root}/tests/certificates/torus-4x4.txt");
    assert_eq!(proof, std::fs::read_to_string(kept).unwrap(), "the format is kept");
    assert!(topocoll(&["check", "proof.txt"]).status.success());

    let lost = format!("{root}/tests/schedules/incomplete.jsonl");
    let failing = ["verify", "full:3", "--schedule", &lost, "--certificate", "none.txt"];
    assert_eq!(topocoll(&failing).status.code(), Some(1));
    assert!(!folder.path().join("none.txt").exists());
}

fn topocoll(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_topocoll");
    Command::new(program).current_dir(folder).args(arguments).output().unwrap()
}

#[test]
fn pictures_have_equal_bytes_each_time() {
    let folder = TempDir::new().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let pictures: [(&str, &[&str]); 4] = [
        ("mesh", &["simulate", "mesh:4x8", "--algorithm", "direct", "--heatmap"]),
        ("space", &["simulate", "torus:4x4x4", "--traffic", "tornado", "--heatmap"]),
        ("pairs", &["simulate", "cluster:4,4,2", "--algorithm", "clustered-factor", "--heatmap"]),
        ("failed", &["simulate", "torus:4x4/1,1/line:0,3+0", "--algorithm", "bruck", "--heatmap"]),
    ];
    for (name, arguments) in pictures {
        let names = ["one", "two"].map(|i| format!("{name}-{i}.svg"));
        for file in &names {
            let ran = topocoll(folder.path(), &[arguments, &[file.as_str()]].concat());
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
        assert!(read(&names[0]) == read(&names[1]), "{name}");
    }
    let svg = String::from_utf8(read("mesh-one.svg")).unwrap();
    for part in ["mesh:4x8", "direct", "topocoll 0", "dimension 0", "bytes over", "104 links idle"]
    {
        assert!(svg.contains(part), "{part}");
    }
    let svg = String::from_utf8(read("failed-one.svg")).unwrap();
    assert!(svg.contains("; failed 1,1 line:0,3+0"));
}

#[test]
fn a_picture_that_cannot_be_drawn_is_refused_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let direct = ["--algorithm", "direct", "--heatmap"];
    for (machine, file) in [
        ("torus:4x4", "links.pdf"),
        ("torus:4x4", "links.png"),
        ("torus:128x64", "links.svg"),
        ("full:512", "links.svg"),
        ("torus:4x4", "nowhere/links.svg"),
    ] {
        let arguments = [&["simulate", machine][..], &direct, &[file]].concat();
        assert_eq!(topocoll(folder.path(), &arguments).status.code(), Some(2), "{machine} {file}");
    }
    for place in ["a", "./a", "../here/a"] {
        let same = ["--svg", "a", "--csv", &place.replace("here", name)];
        assert_eq!(sweep(folder.path(), &same).status.code(), Some(2), "{place}");
    }
    let same = ["--model", "fluid", "--csv", "a", "--trace", "a"];
    let same = [&["simulate", "torus:4x4", "--algorithm", "direct"][..], &same].concat();
    assert_eq!(topocoll(folder.path(), &same).status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_symbolic_link_stays_and_leads_to_the_new_file() {
    let folder = TempDir::new().unwrap();
    let schedule = ["schedule", "full:3", "--algorithm", "direct", "--out"];
    let written = |name: &str| topocoll(folder.path(), &[&schedule[..], &[name]].concat());
    std::fs::write(folder.path().join("there"), "").unwrap();
    for to in ["there", "nowhere"] {
        std::os::unix::fs::symlink(to, folder.path().join(format!("to-{to}"))).unwrap();
    }
    assert!(written("to-there").status.success());
    assert!(std::fs::read_to_string(folder.path().join("there")).unwrap().starts_with("{"));
    let refused = written("to-nowhere");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("`to-nowhere`: a link that leads nowhere"), "{said}");
    assert!(["to-there", "to-nowhere"].iter().all(|name| folder.path().join(name).is_symlink()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn neither_of_two_files_is_written_if_one_cannot_be() {
    let folder = TempDir::new().unwrap();
    let simulate = ["simulate", "torus:4x4", "--algorithm", "direct", "--model", "fluid"];
    for files in [
        ["--csv", "a", "--trace", "nowhere/b"],
        ["--csv", "nowhere/a", "--trace", "b"],
        ["--csv", "a", "--heatmap", "nowhere/b.svg"],
        ["--csv", "a", "--trace", "b/"],
        ["--csv", "a", "--trace", "."],
    ] {
        let refused = topocoll(folder.path(), &[&simulate[..], &files].concat());
        assert_eq!(refused.status.code(), Some(2), "{files:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{files:?}");
    }
    let refused = sweep(folder.path(), &["--svg", "a", "--csv", "nowhere/b"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_unfinished_file_is_removed_when_the_program_is_ended() {
    let schedule = ["schedule", "torus:32x32", "--algorithm", "direct", "--format"];
    for format in ["csv", "simgrid"] {
        // One signal ends the program while another is ignored.
        for (signal, number, deaf) in
            [("INT", 2, "HUP"), ("TERM", 15, "INT"), ("HUP", 1, "QUIT"), ("QUIT", 3, "TERM")]
        {
            let folder = TempDir::new().unwrap();
            let entries = || std::fs::read_dir(folder.path()).unwrap().count();
            let arguments = [&schedule[..], &[format, "--out", "all"]].concat();
            // The parent may have set signals to be ignored (`nohup`, `&`).
            let mut command = Command::new("env");
            command.args(["--default-signal", &format!("--ignore-signal={deaf}")]);
            command.arg(env!("CARGO_BIN_EXE_topocoll"));
            let mut child = command.current_dir(folder.path()).args(arguments).spawn().unwrap();
            while entries() == 0 {
                assert_eq!(child.try_wait().unwrap(), None, "{format}: never half written");
            }
            let id = child.id().to_string();
            for signal in [deaf, signal] {
                let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
                assert!(sent.success());
            }
            assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{format} {signal}");
            assert_eq!(entries(), 0, "{format} {signal}");
        }
    }
}

#[test]
fn a_file_beyond_the_size_limit_is_an_error_and_is_removed() {
    let schedule = ["schedule", "torus:16x16", "--algorithm", "direct", "--format"];
    for format in ["csv", "simgrid"] {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", "ulimit -f 64; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_topocoll")]);
        let arguments = [&schedule[..], &[format, "--out", "all"]].concat();
        let refused = command.current_dir(folder.path()).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{format}: {said}");
        assert!(said.contains("`all`") && said.contains("too large"), "{format}: {said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{format}");
    }
}

#[test]
fn a_page_has_equal_bytes_each_time_and_shows_the_ranking_of_select() {
    let folder = TempDir::new().unwrap();
    let page = |name: &str| {
        let ran = topocoll(folder.path(), &["report", "torus:8x8", "--out", name]);
        assert!(ran.status.success());
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    };
    let text = page("one.html");
    assert!(text == page("two.html"));
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    let after = text.split("id=\"data\">").nth(1).unwrap();
    let data: serde_json::Value =
        serde_json::from_str(after.split("</script>").next().unwrap()).unwrap();
    let select = topocoll(folder.path(), &["select", "torus:8x8", "--json"]);
    let select: serde_json::Value = serde_json::from_slice(&select.stdout).unwrap();
    let choices = select["choices"].as_array().unwrap();
    for (entry, choice) in data["ranking"].as_array().unwrap().iter().zip(choices) {
        assert_eq!(entry["algorithm"], choice["algorithm"]);
        let sum: f64 =
            entry["seconds"].as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).sum();
        assert!((sum - choice["time_seconds"].as_f64().unwrap()).abs() <= 1e-9 * sum);
    }
}

#[test]
fn a_page_that_cannot_be_drawn_is_refused_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    for arguments in [
        &["report", "torus:4x4"][..],
        &["report", "nothing", "--out", "a.html"],
        &["report", "torus:4x4", "--algorithm", "suhshin", "--out", "a.html"],
        &["report", "full:4", "--algorithm", "suh-shin", "--out", "a.html"],
        &["report", "torus:4x4", "--out", "nowhere/a.html"],
        &["report", "torus:4x4", "--set", "radix=2", "--out", "a.html"],
    ] {
        assert_eq!(topocoll(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_commands_of_readme_and_book_make_their_pictures() {
    let folder = TempDir::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = ["README.md", "docs/src/results.md"];
    let pages = pages.map(|page| std::fs::read_to_string(root.join(page)).unwrap()).concat();
    let commands = pages.lines().filter_map(|line| line.strip_prefix("topocoll "));
    let mut pictures = 0;
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    for line in commands.filter(|line| line.contains("examples/")) {
        let line = line.split("  #").next().unwrap();
        let arguments: Vec<_> = line.split_whitespace().collect();
        assert!(topocoll(folder.path(), &arguments).status.success(), "{line}");
        let path = arguments.last().unwrap();
        let read = |folder: &Path| std::fs::read(folder.join(path)).unwrap();
        assert!(read(folder.path()) == read(&root), "topocoll {line}: the picture is another one");
        assert!(pages.contains(&format!("{path})")), "{path} is not shown");
        pictures += 1;
    }
    assert_eq!(pictures, 2);
}

/// A forged line of output.
const FORGED: &str = "forged";

/// Checks that every line is printable, and that none is the forged one.
fn is_unforged(what: &str, text: &str) {
    for line in text.lines() {
        let odd = line.chars().find(|&letter| !topocoll::text::is_printable(letter));
        assert_eq!(odd, None, "{what}: {line:?}");
        assert!(!line.starts_with(FORGED), "{what}: {line:?}");
    }
}

/// Runs a command in a folder; returns its output and the new files.
fn unforged(folder: &Path, arguments: &[&str]) -> Output {
    let before = entries(folder);
    let output = topocoll(folder, arguments);
    let what = format!("{arguments:?}");
    for text in [&output.stdout, &output.stderr] {
        is_unforged(&what, std::str::from_utf8(text).unwrap());
    }
    for name in entries(folder).difference(&before) {
        let path = folder.join(name);
        let files = match path.is_dir() {
            true => std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().path()).collect(),
            false => vec![path],
        };
        for file in files {
            is_unforged(&what, &std::fs::read_to_string(file).unwrap());
        }
    }
    output
}

fn entries(folder: &Path) -> BTreeSet<OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_file_name_is_printed_on_one_line_of_printable_characters() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let machine = format!("m\n{FORGED} 99 # injected\n\u{1b}[31m\u{9b}\u{202e}.toml");
    let text = include_str!("../../../../topologies/paragon-16x16.toml").replace("16x16", "4x4");
    let title = format!("title = \"t\\n{FORGED}\\u001b\\u202e\"");
    let (_, rest) = text.split_once('\n').unwrap();
    std::fs::write(folder.join(&machine), format!("{title}\n{rest}")).unwrap();
    let machine = machine.as_str();
    for line in [
        "bounds",
        "bounds --json",
        "algorithms",
        "select",
        "select --json",
        "verify --algorithm suh-shin --certificate proof",
        "simulate --algorithm suh-shin --model wormhole --trace trace --csv links --heatmap heat.svg",
        "simulate --algorithm suh-shin --model fluid --json",
        "sweep --svg plot.svg --csv table",
        "sweep --front --svg front.svg --json",
        "report --out page",
        "tune --for openmpi --out rules",
        "tune --for openmpi",
        "run --algorithm bruck --repeat 1",
    ] {
        let mut arguments: Vec<_> = line.split(' ').collect();
        arguments.insert(1, machine);
        let ran = unforged(folder, &arguments);
        assert_eq!(ran.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    // Names of files and other values.
    let name = machine.replace(".toml", "");
    for line in [
        "tune full:4 --for openmpi --out @",
        "verify full:4 --algorithm @",
        "verify full:4 --algorithm bruck --set @=1",
        "verify full:4 --algorithm bruck --set radix=@",
        "verify full:4 --schedule @",
        "check @",
        "select full:4 --op @",
        "select full:4 --demand @",
        "select full:4 --ranks @",
        "select full:4 --startup @",
        "select full:4 --block @",
        "select full:4 --timing @",
        "simulate full:4 --traffic @",
        "simulate full:4 --algorithm direct --model fluid --heatmap @",
        "schedule full:4 --algorithm direct --format @",
        "select @",
        "@",
    ] {
        let arguments: Vec<_> = line.split(' ').map(|word| word.replace('@', &name)).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ran = unforged(folder, &arguments);
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("m\\nforged 99 # injected\\n\\u{1b}[31m\\u{9b}\\u{202e}"), "{said}");
    }
}

#[test]
fn an_origin_is_printed_on_one_line_of_printable_characters() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let made = topocoll(folder, &["schedule", "torus:4x4", "--algorithm", "direct"]);
    let header = format!("\"algorithm\":\"a\\\"<&\\n{FORGED}\\n\\u001b\\u202e\"");
    let parameters = format!("\"parameters\":{{\"k\\n{FORGED}\":\"v\\n{FORGED}\\u001b\"}}");
    let text = String::from_utf8(made.stdout).unwrap();
    let text = text.replacen("\"algorithm\":\"direct\"", &format!("{header},{parameters}"), 1);
    std::fs::write(folder.join("schedule"), &text).unwrap();
    let commands = ["verify --certificate proof", "verify --json", "simulate", "run --repeat 1"];
    let lines = commands.into_iter().map(str::to_owned).chain(
        FORMATS
            .iter()
            .map(|Format { name, .. }| format!("schedule --format {name} --out {name}.out")),
    );
    for line in lines {
        let mut arguments: Vec<_> = line.split(' ').collect();
        arguments.splice(1..1, ["torus:4x4", "--schedule", "schedule"]);
        let ran = unforged(folder, &arguments);
        assert_eq!(ran.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    // In formats with quotes no value closes a quote.
    let written = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(written("dot.out").starts_with("digraph \"a\\\"<&\\\\nforged"));
    assert!(written("msccl.out").starts_with("<algo name=\"a&quot;&lt;&amp;\\nforged"));
}

#[test]
fn a_long_value_is_cut_and_followed_by_its_length() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("m.toml"), format!("title = {}", "x".repeat(5000))).unwrap();
    let long = "x".repeat(5000);
    for line in [
        "@",
        "select full:@",
        "select full:4 --@",
        "select full:4 --op @",
        "select full:4 --block @",
        "select full:4 --startup @",
        "select full:4 --ranks @",
        "select full:4 --demand @",
        "select full:4 --demand @:7",
        "select full:4 --timing torus:@",
        "select m.toml",
        "verify full:4 --algorithm @",
        "verify full:4 --algorithm bruck --set @=1",
        "verify full:4 --algorithm bruck --set radix=@",
        "verify full:4 --schedule @",
        "simulate full:4 --traffic @",
        "simulate full:4 --algorithm direct --model flit --set vcs=@",
        "simulate full:4 --algorithm direct --heatmap @",
        "schedule full:4 --algorithm direct --format @",
        "schedule full:4 --algorithm direct --out @",
        "tune full:4 --for openmpi --release @",
        "check @",
    ] {
        let arguments: Vec<_> = line.split(' ').map(|word| word.replace('@', &long)).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ran = topocoll(folder.path(), &arguments);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{line}: {said}");
        assert!(!said.contains(&"x".repeat(201)), "{line}: {said}");
        let length = said.contains("… (5") || line.ends_with("m.toml");
        assert!(length, "{line}: {said}");
    }
}

#[test]
fn an_output_that_nothing_reads_ends_the_program_silently() {
    for line in [
        "--help",
        "help",
        "select full:4",
        "select full:4 --json",
        "schedule full:4 --algorithm direct",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_topocoll"));
        let ran = command.args(line.split(' ')).stdout(writer).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), &*said), (Some(141), ""), "{line}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let folder = TempDir::new().unwrap();
    for line in [
        "--help",
        "--version",
        "help",
        "help select",
        "select --help",
        "select -h",
        "select full:4",
        "select full:4 --json",
        "schedule full:4 --algorithm direct",
        "tune full:4 --for openmpi",
        "completions bash",
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_topocoll"))
            .args(line.split(' '))
            .current_dir(folder.path())
            .stdout(std::fs::File::create("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{line}: {said}");
        assert!(said.starts_with("error: ") && said.contains("No space left"), "{line}: {said}");
    }
}

#[test]
fn the_next_run_removes_unfinished_files_of_a_killed_run_only() {
    let schedule = ["schedule", "torus:32x32", "--algorithm", "direct", "--format"];
    for format in ["csv", "simgrid"] {
        let folder = TempDir::new().unwrap();
        let folder = folder.path();
        let start = |out: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_topocoll"));
            command.current_dir(folder).args(schedule).args([format, "--out", out]);
            let before = entries(folder);
            let mut child = command.spawn().unwrap();
            // An empty file first tests whether the file can be written.
            let written = |name: &OsString| {
                let path = folder.join(name);
                match std::fs::read_dir(&path) {
                    Ok(mut files) => files.next().is_some(),
                    Err(_) => std::fs::metadata(path).is_ok_and(|file| file.len() > 0),
                }
            };
            while !entries(folder).difference(&before).any(written) {
                assert_eq!(child.try_wait().unwrap(), None, "{format}: never half written");
            }
            child
        };
        let mut killed = start("all");
        killed.kill().unwrap();
        killed.wait().unwrap();
        let left = entries(folder);
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left.iter().all(|name| name.to_str().unwrap().starts_with(".all.topocoll-")));
        // Files of other programs with similar names, and an unfinished file of another target.
        let others =
            [".all.topocoll-", ".all.topocoll-note", ".all.topocoll-notes-1", ".al", "all2"];
        for name in &others {
            std::fs::write(folder.join(name), "mine").unwrap();
        }
        let mut other = start("other");
        other.kill().unwrap();
        other.wait().unwrap();
        // A concurrent run with the same target.
        let before = entries(folder);
        let mut living = start("all");
        let of_living: Vec<_> = entries(folder).difference(&before).cloned().collect();
        assert_eq!(of_living.len(), 1, "{of_living:?}");
        let quick = ["schedule", "torus:2x2", "--algorithm", "direct", "--format", format, "--out"];
        let ran = topocoll(folder, &[&quick[..], &["all"]].concat());
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        let there = entries(folder);
        assert!(there.contains(&of_living[0]), "{format}: a living run's file is gone: {there:?}");
        assert!(left.is_disjoint(&there), "{format}: left: {there:?}");
        assert!(others.iter().all(|name| there.contains(OsStr::new(name))), "{there:?}");
        let of_other = there.iter().filter(|name| name.to_str().unwrap().starts_with(".other."));
        assert_eq!(of_other.count(), 1, "{there:?}");
        living.kill().unwrap();
        living.wait().unwrap();
    }
}

/// The file in the book is the one that the program verifies, line for line.
#[test]
fn the_schedule_in_the_book_is_proved_and_ranked() {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/formats.md");
    let chapter = std::fs::read_to_string(chapter).unwrap();
    let (_, text) = chapter.split_once("```json\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("mine.jsonl"), text).unwrap();
    let told = |command| {
        let output = topocoll(folder.path(), &[command, "mesh:3", "--schedule", "mine.jsonl"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told("verify").starts_with("Proved: mine delivers every block.\n"));
    let ranked = told("select");
    assert!(ranked.contains("\n mine.jsonl "), "{ranked}");
}
