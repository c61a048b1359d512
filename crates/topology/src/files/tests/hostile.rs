//! Files that are refused.

use super::*;

/// Hostile files of a kind, by what its text is made into, and a part of what is said.
#[test]
fn hostile_files_are_refused_with_their_reason() {
    let huge = "9".repeat(40);
    let nodes = "SwitchName=a Nodes=n[0-3]\n";
    let yaml = "- topology: t\n  tree:\n    switches:\n";
    let table = "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV2\tX\n";
    let cases: Vec<(String, &str)> = vec![
        // Host files and rankfiles.
        (format!("n1 slots={huge}\n"), "is not a number of ranks"),
        ("n1 slots=NaN\n".into(), "`NaN` is not a number of ranks"),
        ("n1 slots=-1\n".into(), "`-1` is not a number of ranks"),
        ("n1:4 np=4\n".into(), "a second number of ranks"),
        ("n1 np=4 a=b\n".into(), "`a` is not one of slots"),
        ("n0\nn1 slots=4 big\n".into(), "`big` is not one of slots"),
        ("n1:4:core\n".into(), "`core` is not one of slots"),
        ("n1 slots=4\n^n1\n".into(), "0 nodes"),
        ("n1 np=4294967295\nn1 np=1\n".into(), "too many ranks on n1"),
        ("rank 0=a\nrank 0=b\n".into(), "rank 0 is listed twice"),
        ("rank 0=a\nrank 2=b\n".into(), "rank 2, but no rank 1"),
        (format!("rank {huge}=a\n"), "is not a line such as"),
        ("rank NaN=a\n".into(), "is not a line such as"),
        ("rank 0=\n".into(), "is not a line such as"),
        ("rank 0=a\nrank 1".into(), "is not a line such as"),
        ("rank 0=a core=3\n".into(), "`core=3` is not slot=.."),
        // Machine files.
        ("version = 1\n".into(), "missing field `title`: a machine file needs title, shape, ports"),
        // Slurm.
        (
            format!("{nodes}SwitchName=b Nodes=n[2-5]\n"),
            "n2 is listed twice: each node is under one",
        ),
        (format!("{nodes}SwitchName=a Nodes=m\n"), "a is listed twice"),
        (format!("{nodes}SwitchName=b Switches=b\n"), "b is below itself"),
        (format!("{nodes}SwitchName=b Switches=a LinkSpeed=NaN\n"), "LinkSpeed is `NaN`"),
        (format!("{nodes}SwitchName=b Switches=a LinkSpeed={huge}\n"), "LinkSpeed is `999"),
        (format!("{nodes}SwitchName=b"), "no Nodes and no Switches"),
        (format!("{nodes}SwitchName=b Nodes=m[0-{huge}]\n"), "is not a host list"),
        (format!("{nodes}SwitchName=b Nodes=m[0-\n"), "is not a host list"),
        (format!("{nodes}SwitchName=b Speed=3\n"), "`Speed` is not one of SwitchName"),
        (format!("{nodes}SwitchName=b Level=1 Nodes=x Switches=a\n"), "x is under no leaf switch"),
        (
            format!(
                "{nodes}SwitchName=b Switches=a\nSwitchName=c Nodes=m\nSwitchName=d Switches=c\n"
            ),
            "c is in another tree: no switch is above the 2 roots b, d",
        ),
        (
            format!("{yaml}      - switch: a\n        nodes: n[0-1]\n        colour: 3\n"),
            "`colour` is not one",
        ),
        (
            format!(
                "{yaml}      - switch: a\n        nodes: n[0-1]\n      - switch: a\n        nodes: m\n"
            ),
            "a is listed twice",
        ),
        (
            format!(
                "{yaml}      - switch: a\n        nodes: n[0-1]\n      - switch: b\n        nodes: n1\n"
            ),
            "n1 is listed twice",
        ),
        (format!("{yaml}      - switch: a\n        children: a\n"), "a is below itself"),
        (
            format!("{yaml}      - switch: a\n        nodes: &x n1\n"),
            "`&x n1` is not a plain value",
        ),
        (format!("{yaml}      - {{switch: a}}\n"), "`{switch` is not one of topology"),
        (format!("{yaml}      - switch: a\n"), "no Nodes and no Switches"),
        (format!("{yaml}        nodes: a\n"), "`nodes` is not one of topology"),
        (yaml.into(), "0 nodes"),
        (format!("x: y\n{yaml}"), "`x` before `- topology: NAME`"),
        (format!("{yaml}      - switch\n"), "is not `key: value`"),
        ("- topology: t\n  flat: true\n".into(), "names no switches"),
        // nvidia-smi.
        (table.replace("NV2\tX", "NV3\tX"), "paths are the same both ways"),
        (table.replace("NV2", "NV0"), "`NV0` is not NV1 to NV18"),
        (table.replace("NV2", "NaN"), "`NaN` is not NV1 to NV18"),
        (table.replace("NV2", &format!("NV{huge}")), "is not NV1 to NV18"),
        (table.replace("NV2", "\u{5168}"), "is not NV1 to NV18"),
        (table.replace("GPU0\tX", "GPU0\tNV1"), "a GPU has X to itself"),
        (table.replace("GPU1\tNV2\tX\n", ""), "no row of GPU1"),
        (table.replace("GPU1\tNV2\tX\n", "GPU1\tNV2\n"), "no path to GPU1"),
        (table.replace("GPU1\tNV2\tX\n", "GPU0\tX\tNV2\n"), "a second row of GPU0"),
        (format!("{table}GPU2\tX\n"), "`GPU2` is not one of the columns"),
        (format!("what\n{table}"), "`what` before the line of GPUs"),
        (format!("GPU0{}\n", "\tGPU".repeat(9)), "no row of GPU0"),
        (format!("GPU0{}\n", "\tGPU7".repeat(2000)), "more than 1024 columns"),
        // rocm-smi.
        (ROCM.replace("XGMI", "NVL"), "`NVL` is not XGMI or PCIE"),
        (ROCM.replacen("15", "NaN", 1), "`NaN` is not a whole number"),
        (ROCM.replacen("15", &huge, 1), "is not a whole number"),
        (ROCM.replacen("15", "30", 1), "GPU0 and GPU1 have another path back"),
        (ROCM.replacen("XGMI", "PCIE", 1), "GPU0 and GPU1 have another path back"),
        (ROCM.replace("Link", "Sink"), "no table `Link Type between two GPUs`"),
        (ROCM.replace("Hops", "Weight"), "a second table of this title"),
        (
            ROCM.replacen("GPU1   15           0\n", "", 1),
            "`Weight between two GPUs` has no row of each",
        ),
        (ROCM.replacen("GPU1   15", "GPU1   15 3", 1), "not a row of GPU1 with 2 values"),
        (ROCM.replacen("GPU1   15", "GPU0   15", 1), "not a row of GPU1 with 2 values"),
        (ROCM.replacen("GPU0   0", "x", 1), "not a row of GPU0"),
        (format!("== {} ==\n{}\n", rocm_smi::TABLES[2], "GPU0 ".repeat(300)), "more than 256 GPUs"),
        // NCCL's XML.
        (NCCL.replace("count='2'", "count='NaN'"), "`NVNaN` is not NV1"),
        (NCCL.replace("count='2'", &format!("count='{huge}'")), "is not NV1 to NV18"),
        (NCCL.replace("count='2'", ""), "<nvlink> has no count"),
        (NCCL.replace("100000", "NaN"), "speed is `NaN`, not a number of Mbit/s"),
        (NCCL.replace("100000", "1e99"), "speed is `1e99`"),
        (NCCL.replace("<nic>", "<nic><dog/>"), "<dog> is not one of system"),
        (NCCL.replace("0x068000", "0x030200"), "lead to `0:2`, which is no other GPU"),
        (
            NCCL.replace("target='0:2'", "target='0:1'").replace("0x068000", "0"),
            "which is no other GPU",
        ),
        (NCCL.replace("<nic>", "<pci busid='0:1'><gpu/></pci><nic>"), "two GPUs have one address"),
        (
            NCCL.replace("busid='0:1'", "busid='0:1' link_speed='fast' link_width='8'"),
            "link_speed is `fast`",
        ),
        (NCCL[..NCCL.len() - 9].to_owned(), "open elements"),
        (NCCL.replace("<nic>", &"<nic>".repeat(300)), "more than 256 nested elements"),
        ("<system/>".into(), "0 nodes"),
        // lstopo's XML.
        ("<topology/>".into(), "no Core and no PU"),
        ("<topology><object type='PU' cpuset='0xNaN'/></topology>".into(), "cpuset `0xNaN` is not"),
        (
            "<topology><object type='PU' allowed_cpuset='-1' cpuset='1'/></topology>".into(),
            "allowed_cpuset `-1` is not a list of hexadecimal",
        ),
        (
            format!("<topology><object type='PU' cpuset='{huge}'/></topology>"),
            "is not a list of hexadecimal numbers",
        ),
        ("<topology><object type='Core'>".into(), "the file ends with 2 open elements"),
        // ibnetdiscover.
        (FABRIC.replace("4xHDR", "4xWDR"), "`4xWDR` is not a rate such as 4xHDR"),
        (FABRIC.replace("4xHDR", "NaNxHDR"), "`NaNxHDR` is not a rate"),
        (FABRIC.replace("4xHDR", &format!("{huge}xHDR")), "is not a rate"),
        (FABRIC.replace("4xHDR", "0xHDR"), "is not a rate"),
        (FABRIC.replace(" lid 5 4xHDR", ""), "is not a rate"),
        (FABRIC.replace("\"H-2\"", "H-2"), "is not a port such as"),
        (FABRIC.replace("Switch 40", "Router 40"), "`Router` is not Switch, Ca or Rt"),
        (FABRIC.replace("\"S-1\"", ""), "no identifier such as"),
        (FABRIC.replace("Switch", "# Switch"), "below a Switch or a Ca"),
        (FABRIC.replace("S-3", "S-1"), "a link from a node to itself"),
        (FABRIC[..FABRIC.find("[1]").unwrap()].to_owned(), "0 nodes"),
        (
            format!(
                "{FABRIC}switchguid=2\nSwitch 4 \"S-4\" # \"x\"\n[1] \"H-5\"[1] # \"n5\" 4xHDR\n"
            ),
            "not connected",
        ),
    ];
    let mut others = Vec::new();
    for (text, said) in cases {
        let refused = read("some", &text).map(|machine| machine.topology.short_form());
        let is = |error: &SpecError| {
            error.message.contains(said)
                && error.span.as_ref().is_none_or(|at| text.get(at.clone()).is_some())
        };
        if !refused.as_ref().is_err_and(is) {
            others.push(format!("{}: {refused:?}, not {said}", shown(&text)));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    // Cut and altered texts are read or refused.
    let mut random = fastrand::Rng::with_seed(7);
    for (_, text, _) in READ {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = read("cut", &text[..end]);
            let mut bytes = text.as_bytes().to_vec();
            bytes[end] = random.u8(..128);
            let _ = read("changed", &String::from_utf8(bytes).unwrap());
            let doubled = format!("{}{}", &text[..end], &text[end / 2..]);
            let _ = read("doubled", &doubled);
        }
        let numbers = |other: &str| {
            let is_digit = |c: char| c.is_ascii_digit();
            text.split(is_digit).collect::<Vec<_>>().join(other)
        };
        let middle = text.floor_char_boundary(text.len() / 2);
        let inserted = |what: &str| format!("{}{what}{}", &text[..middle], &text[middle..]);
        let wide: String = text.chars().flat_map(|c| [c, '\0']).collect();
        for hostile in [
            numbers("NaN"),
            numbers("-1"),
            numbers(&huge),
            numbers("1e999"),
            numbers("0"),
            text.lines().rev().map(|line| format!("{line}\n")).collect(),
            text.lines().map(|line| format!("{line}\n{line}\n")).collect(),
            inserted(&"[({<".repeat(50_000)),
            inserted(&"a=\"".repeat(50_000)),
            inserted("\u{feff}\u{e9}\u{2028}\u{fffd}"),
            wide,
        ] {
            let start = std::time::Instant::now();
            let _ = read("hostile", &hostile);
            assert!(start.elapsed().as_secs() < 5, "{}", shown(&hostile));
        }
    }
}
