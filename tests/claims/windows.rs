//! Points that exchanges of meshes reach by exchanges of their own inside windows.

use crate::reached::{Refused, check, check_refused};
use topocoll::Method;

/// Machine, the setting of `coloured-rings` with `landing=windows`, steps, blocks.
const REACHED: &[(&str, &str, u64, f64)] = &[
    ("mesh:8x8", "classes=1,inside=binary-exchange", 10, 192.0),
    ("mesh:8x8", "classes=1,inside=quadrant-exchange", 11, 176.0),
    ("mesh:16x16", "classes=1,inside=binary-exchange", 34, 1280.0),
    ("mesh:16x16", "classes=1,inside=quadrant-exchange", 35, 1216.0),
    ("mesh:10x6", "classes=1,inside=quadrant-exchange", 15, 221.0),
    ("mesh:2x14", "classes=1,inside=quadrant-exchange", 27, 117.0),
    ("mesh:12x12", "inside=tabled", 24, 528.0),
    ("mesh:16x16", "inside=tabled", 28, 1280.0),
    ("mesh:12x20", "inside=tabled", 32, 1520.0),
    ("mesh:16x32", "inside=tabled", 44, 5376.0),
    ("mesh:32x32", "inside=tabled", 44, 9216.0),
];

const REFUSED: &[Refused] = &[
    ("mesh:8x8", 1, "coloured-rings", "inside=direct", "inside requires landing=windows"),
    ("mesh:8x8", 1, "coloured-rings", "landing=windows,inside.radix=5", "requires inside=NAME"),
    ("mesh:8x8", 1, "coloured-rings", "landing=windows,inside=bruk", "inside=bruk: unknown"),
    ("mesh:8x8", 1, "coloured-rings", "landing=windows,inside=coloured-rings", "not another"),
    ("mesh:8x34", 1, "coloured-rings", "landing=windows,inside=direct,classes=1", "up to 32"),
    ("mesh:4x4x4", 1, "coloured-rings", "landing=windows,inside=direct", "a mesh of two sides"),
    ("torus:8x8", 1, "coloured-rings", "landing=windows,inside=direct", "sides that do not wrap"),
];

#[test]
fn exchanges_inside_windows_reach_these_steps_and_volumes() {
    for &(text, inside, steps, blocks) in REACHED {
        let setting = format!("landing=windows,{inside}");
        check(&(text, 1, "coloured-rings", &setting, steps, blocks), Method::Replay);
    }
}

#[test]
fn values_of_exchanges_inside_windows_are_refused() {
    REFUSED.iter().for_each(check_refused);
}
