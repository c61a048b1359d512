//! Choices that are not counted: lower bounds of their times.

use std::process::Command;

use serde_json::Value;

fn topocoll(line: &str) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_topocoll")).args(line.split(' ')).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// They come last in the text and by time in the JSON, have a `>=` wherever they tell one, and are not the answer.
#[test]
fn floors_are_listed_last_and_marked() {
    let mut machines = vec!["torus:61x61", "mesh:41x43", "torus:64x64x64"];
    if std::env::var_os("TOPOCOLL_SWEEP").is_some() {
        machines.extend([
            "torus:1024x1024",
            "mesh:512x512",
            "dragonfly:8,16,8",
            "fat-tree:32,2*128",
        ]);
    }
    let mut floors = 0;
    for machine in machines {
        let json: Value =
            serde_json::from_str(&topocoll(&format!("select {machine} --json"))).unwrap();
        let choices = json["choices"].as_array().unwrap();
        let time = |choice: &Value| choice["ranked_seconds"].as_f64().unwrap();
        assert!(choices.is_sorted_by(|a, b| time(a) <= time(b)), "{machine}");
        let chosen = choices.iter().find(|choice| {
            ["algorithm", "parameters"].iter().all(|key| choice[key] == json["recommended"][key])
        });
        assert_eq!(chosen.unwrap()["priced"], Value::Null, "{machine}");
        let text = topocoll(&format!("select {machine} --all"));
        let rows = text.lines().skip_while(|line| !line.starts_with(" algorithm"));
        // The winners by block size follow.
        let ends = |line: &&str| line.is_empty() || line.starts_with(" from ");
        let rows: Vec<&str> = rows.take_while(|line| !ends(line)).collect();
        let is_floor = |row: &&str| row.contains(">= ");
        let exact = rows.iter().position(&is_floor).unwrap_or(rows.len());
        assert!(exact > 1 && rows[exact..].iter().all(is_floor), "{machine}: {text}");
        for row in &rows[exact..] {
            // Time, ratio to the bound, its three terms, and charged volume.
            assert_eq!(row.matches(">= ").count(), 6, "{machine}: {row}");
        }
        let listed = choices.iter().filter(|choice| choice["priced"] == "at_least").count();
        assert_eq!(rows.len() - exact, listed, "{machine}: {text}");
        floors += listed;
    }
    assert!(floors > 2, "{floors}");
}
