//! Names of settings by their number of steps.

use std::process::Command;

use serde_json::Value;

fn topocoll(line: &str) -> (i32, String, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_topocoll")).args(line.split(' ')).output().unwrap();
    let [out, error] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
    (ran.status.code().unwrap(), out, error)
}

/// The printed name, given back, writes the schedule that the parameters of the JSON write.
#[test]
fn a_name_with_steps_is_the_schedule() {
    for machine in
        ["torus:8x8", "torus:4x8 --ports 2", "mesh:4x8 --block 64KiB", "cluster:4*4 --block 64KiB"]
    {
        let (_, json, _) = topocoll(&format!("select {machine} --json"));
        let json: Value = serde_json::from_str(&json).unwrap();
        let (_, text, _) = topocoll(&format!("select {machine} --all"));
        let (_, words, _) = topocoll(&format!("select {machine} --all --why"));
        let mut named = 0;
        let choices = json["choices"].as_array().unwrap();
        for choice in choices {
            let (algorithm, steps) = (choice["algorithm"].as_str().unwrap(), &choice["steps"]);
            let named_so = |text: &str| {
                let label = format!(" {steps} steps ");
                text.lines()
                    .filter(|line| {
                        line.starts_with(&format!(" {algorithm} ")) && line.contains(&label)
                    })
                    .count()
            };
            assert_eq!(named_so(&words), 0, "{machine}: {words}");
            if named_so(&text) == 0 || named > 1 {
                continue;
            }
            named += 1;
            assert_eq!(named_so(&text), 1, "{machine}: {text}");
            let first = choices.iter().find(|other| {
                other["algorithm"] == *algorithm && other["steps"].as_u64() <= steps.as_u64()
            });
            let set = first.unwrap()["parameters"].as_object().unwrap().iter();
            let set = set.map(|(key, value)| {
                format!(" --set {key}={}", value.to_string().trim_matches('"'))
            });
            let write = format!("schedule {machine} --algorithm {algorithm}");
            let (_, by_words, _) = topocoll(&(write.clone() + &set.collect::<String>()));
            let (code, by_steps, error) = topocoll(&format!("{write} --set steps={steps}"));
            assert_eq!(code, 0, "{error}");
            assert!(by_steps == by_words, "{machine}: {algorithm} steps={steps}");
            let header = by_steps.lines().next().unwrap();
            assert!(!header.contains("\"steps\""), "{header}");
        }
        assert!(named > 0, "{machine}: {text}");
    }
}

#[test]
fn commands_name_what_steps_resolve_to() {
    let (_, text, _) = topocoll("verify torus:8x8 --algorithm strided-rings --set steps=20");
    let named = text.split(" delivers").next().unwrap();
    assert!(named.starts_with("Proved: strided-rings (") && named.ends_with(" steps)"), "{text}");
    let (_, text, note) = topocoll("simulate torus:8x8");
    let name = note.strip_prefix("note: no --algorithm: ").unwrap().split(", the choice").next();
    assert!(name.unwrap().ends_with(" steps)"), "{note}");
    assert!(text.starts_with(name.unwrap()), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proof");
    let line = format!(
        "verify torus:8x8 --algorithm coloured-rings --set steps=32 --json --certificate {}",
        path.display()
    );
    let json: Value = serde_json::from_str(&topocoll(&line).1).unwrap();
    let parameters = json["parameters"].as_object().unwrap();
    let certificate = std::fs::read_to_string(path).unwrap();
    let line = certificate.lines().find(|line| line.starts_with("algorithm ")).unwrap();
    for (key, value) in parameters {
        assert!(line.contains(&format!("{key}={}", value.to_string().trim_matches('"'))), "{line}");
    }
    assert!(parameters.contains_key("landing") && !line.contains("steps="), "{line}");
}

#[test]
fn too_few_steps_are_refused() {
    let given = "verify torus:8x8 --algorithm strided-rings --set steps=2";
    let (code, _, error) = topocoll(given);
    assert_eq!(code, 2);
    let fewest = error.split("not at least ").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(
        error.lines().next().unwrap(),
        format!(
            "error: strided-rings: steps is `2`, not at least {fewest}, the fewest steps of its settings"
        )
    );
    let fewest = given.replace("steps=2", &format!("steps={fewest}"));
    assert_eq!(topocoll(&fewest).0, 0);
}
