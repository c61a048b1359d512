//! Demand matrices from files.

use std::io::{BufRead, Read};

use super::Demand;
use crate::{MAX_BLOCK_BYTES, Problem, ScheduleError};

/// A size in bytes, also as a floating-point number without a fraction.
fn size_of(text: &str) -> Option<u64> {
    let bytes = text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        // Whole numbers up to the largest size are exact.
        (number.fract() == 0.0 && (0.0..=MAX_BLOCK_BYTES as f64).contains(&number))
            .then_some(number as u64)
    });
    bytes.filter(|&bytes| bytes <= MAX_BLOCK_BYTES)
}

impl Demand {
    /// Reads sizes in bytes, a line for each rank: its blocks for rank 0, rank 1 and so on, separated
    /// by commas, or by blanks in a line without commas. For an all-gather a line has the size of one
    /// block. A size may be written as a whole floating-point number, such as `1.0e+03`, and a comma may
    /// follow the last one. Empty lines, and what follows a `#`, are skipped.
    ///
    /// # Errors
    /// [`ScheduleError::Line`] for a value that is not a size, for a wrong number of lines or
    /// columns, and for a last line without an end, which may have been cut.
    pub fn read(problem: &Problem, file: impl BufRead) -> Result<Self, ScheduleError> {
        Ok(Self::read_trace(problem, file, 1)?.remove(0))
    }

    /// Reads a trace of at most `most` matrices, one for each step of a program: the lines of the first, as
    /// [`read`](Self::read) takes them, then those of the next.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_trace(
        problem: &Problem,
        mut file: impl BufRead,
        most: usize,
    ) -> Result<Vec<Self>, ScheduleError> {
        let (ranks, columns) = (problem.ranks as usize, problem.blocks_at_start() as usize);
        let refuse = |line: usize, message: String| Err(ScheduleError::Line { line, message });
        // The longest line: NumPy writes a size in 25 characters, and a comment may follow.
        let longest = 32 * columns as u64 + 1024;
        let (mut sizes, mut rows, mut text) = (Vec::new(), 0, Vec::new());
        for line in 1.. {
            text.clear();
            let read = file.by_ref().take(longest).read_until(b'\n', &mut text);
            if let Err(error) = read {
                return refuse(line, error.to_string());
            }
            if text.is_empty() && rows > 0 && rows % ranks == 0 {
                break;
            }
            if text.is_empty() {
                let (matrix, rows) = (rows / ranks + 1, rows % ranks);
                let of = if matrix > 1 { format!(" of matrix {matrix}") } else { String::new() };
                let message = format!(
                    "the file ends after {rows} of {ranks} lines of sizes{of}: each rank has one"
                );
                return refuse(line, message);
            }
            if text.len() as u64 == longest && !text.ends_with(b"\n") {
                return refuse(line, format!("the line is longer than {columns} sizes"));
            }
            let Some(row) = text.strip_suffix(b"\n") else {
                return refuse(line, "no end of line: the file may have been cut here".to_owned());
            };
            let row = String::from_utf8_lossy(row);
            let row = if line == 1 { row.trim_start_matches('\u{feff}') } else { &row };
            let row = row.split('#').next().unwrap_or_default().trim();
            if row.is_empty() {
                continue;
            }
            rows += 1;
            if rows > ranks * most {
                let message = match most {
                    1 => format!("more lines than the {ranks} ranks"),
                    _ => format!("more than {most} matrices of {ranks} lines"),
                };
                return refuse(line, message);
            }
            let mut found = 0;
            let commas = row.contains(',');
            let row = row.strip_suffix(',').unwrap_or(row);
            let sizes_of_row =
                row.split(|c: char| if commas { c == ',' } else { c.is_whitespace() });
            for size in sizes_of_row.filter(|size| commas || !size.is_empty()) {
                found += 1;
                if found > columns {
                    return refuse(line, format!("column {found}: a line has {columns} sizes"));
                }
                match size_of(size.trim()) {
                    Some(bytes) => sizes.push(bytes),
                    None => {
                        let rule = format!("a size is a whole number from 0 to {MAX_BLOCK_BYTES}");
                        return refuse(line, format!("column {found}: `{}`: {rule}", size.trim()));
                    }
                }
            }
            if found < columns {
                return refuse(line, format!("{found} sizes: a line has {columns}"));
            }
        }
        let matrices = sizes.chunks(ranks * columns);
        Ok(matrices.map(|sizes| Self::listed(problem, sizes.to_vec())).collect())
    }
}

#[cfg(test)]
mod tests {
    use topocoll_topology::Rank;

    use super::super::tests::problem;
    use super::*;
    use crate::{Collective, Drawn, Law};

    #[test]
    fn a_byte_order_mark_is_no_size() {
        let problem = problem(Collective::AllToAll, 2, 1);
        let read = |text: &str| Demand::read(&problem, text.as_bytes());
        assert_eq!(read("\u{feff}0,7\n7,0\n").unwrap(), read("0,7\n7,0\n").unwrap());
        assert!(read("0,7\n\u{feff}7,0\n").is_err());
    }

    /// Twenty-four bytes a size, whatever stands around it, and two for the end of the line.
    #[test]
    fn a_line_is_as_long_as_its_sizes_may_be() {
        let read = |bytes: usize| {
            let line = format!("{:>width$}\n", "1,2,3", width = bytes - 1);
            let lines = line.repeat(3);
            Demand::read(&problem(Collective::AllToAll, 3, 1), lines.as_bytes()).map(drop)
        };
        assert_eq!(read(3 * 32 + 1024), Ok(()));
        let message = "the line is longer than 3 sizes".to_owned();
        assert_eq!(read(3 * 32 + 1025), Err(ScheduleError::Line { line: 1, message }));
    }

    #[test]
    fn rows_and_columns_are_those_of_the_file() {
        let text = "0, 1,2\n3,4,5\r\n6,7,1099511627776\n";
        let demand = Demand::read(&problem(Collective::AllToAll, 3, 1), text.as_bytes());
        let demand = demand.expect("a good file");
        assert_eq!(demand.row(Rank(1)).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(demand.column(Rank(1)).collect::<Vec<_>>(), [1, 4, 7]);
        assert_eq!(demand.mean(), (28 + MAX_BLOCK_BYTES).div_ceil(9));
        let gathered = Demand::read(&problem(Collective::AllGather, 3, 1), "4\n0\n9\n".as_bytes());
        let gathered = gathered.expect("a good file");
        assert_eq!(gathered.row(Rank(2)).collect::<Vec<_>>(), [9]);
        assert_eq!(gathered.column(Rank(2)).collect::<Vec<_>>(), [4, 0, 9]);
    }

    /// However sizes are separated, written and commented, they are the same.
    #[test]
    fn files_of_all_spellings_have_the_same_sizes() {
        let mut random = fastrand::Rng::with_seed(55);
        for _ in 0..500 {
            let ranks = random.usize(1..7);
            let draw = |_| random.u64(0..=MAX_BLOCK_BYTES) >> random.u32(0..41);
            let sizes: Vec<u64> = (0..ranks * ranks).map(draw).collect();
            let mut text = String::new();
            for row in sizes.chunks(ranks) {
                for _ in 0..random.usize(0..3) {
                    text += ["\n", "# 1 2 3\n", "  \t\r\n", " #\n"][random.usize(0..4)];
                }
                let mut spelt = |&size: &u64| match random.u32(0..4) {
                    0 => format!("{size}.0"),
                    1 => {
                        // As NumPy writes them: 18 digits and an exponent of two.
                        let float = format!("{:.18e}", size as f64);
                        let (digits, exponent) = float.split_once('e').expect("an exponent");
                        format!("{digits}e+{exponent:0>2}")
                    }
                    _ => size.to_string(),
                };
                let written: Vec<String> = row.iter().map(&mut spelt).collect();
                let between = [",", ", ", " ", "\t", " , ", "   "][random.usize(0..6)];
                let comma = if between.contains(',') && random.bool() { "," } else { "" };
                let end = ["\n", "\r\n", "  \n", " # of this rank\n"][random.usize(0..4)];
                text += &(written.join(between) + comma + end);
            }
            let demand =
                Demand::read(&problem(Collective::AllToAll, ranks as u32, 1), text.as_bytes());
            let demand = demand.unwrap_or_else(|error| panic!("{error}: {text}"));
            let found: Vec<u64> =
                (0..ranks as u32).flat_map(|rank| demand.row(Rank(rank))).collect();
            assert_eq!(found, sizes, "{text}");
        }
    }

    #[test]
    fn a_trace_has_a_matrix_for_each_step() {
        let problem = problem(Collective::AllToAll, 2, 1);
        let read = |text: &str| Demand::read_trace(&problem, text.as_bytes(), 3);
        let trace = read("0,1\n2,0\n\n# step 1\n0,3\n4,0\n").unwrap();
        let first: Vec<u64> = trace.iter().map(|of| of.bytes(block(0, 1))).collect();
        assert_eq!(first, [1, 3]);
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refused("0,1\n2,0\n0,3\n"),
            "line 4: the file ends after 1 of 2 lines of sizes of matrix 2: each rank has one"
        );
        let long = "0,1\n".repeat(7);
        assert_eq!(refused(&long), "line 7: more than 3 matrices of 2 lines");
    }

    fn block(from: u32, to: u32) -> crate::Block {
        crate::Block { from: Rank(from), to: Rank(to) }
    }

    #[test]
    fn bad_files_are_refused_with_line_and_column() {
        let cases = [
            ("", "line 1: the file ends after 0 of 2 lines of sizes: each rank has one"),
            (
                "# to 0, to 1\n1 2\n\n",
                "line 4: the file ends after 1 of 2 lines of sizes: each rank has one",
            ),
            ("1,2\n3,4", "line 2: no end of line: the file may have been cut here"),
            ("1,2\n3,4\n5,6\n", "line 3: more lines than the 2 ranks"),
            ("1,2\n3\n", "line 2: 1 sizes: a line has 2"),
            ("1,2,3\n", "line 1: column 3: a line has 2 sizes"),
            ("1,-2\n", "line 1: column 2: `-2`: a size is a whole number from 0 to 1099511627776"),
            ("1,2\n,4\n", "line 2: column 1: ``: a size is a whole number from 0 to 1099511627776"),
            ("1,,\n", "line 1: column 2: ``: a size is a whole number from 0 to 1099511627776"),
            ("1 2 3\n", "line 1: column 3: a line has 2 sizes"),
            (
                "1 2, 3\n",
                "line 1: column 1: `1 2`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 2.5e+00\n",
                "line 1: column 2: `2.5e+00`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 nan\n",
                "line 1: column 2: `nan`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 inf\n",
                "line 1: column 2: `inf`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1 -1.0\n",
                "line 1: column 2: `-1.0`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "1,1099511627777\n",
                "line 1: column 2: `1099511627777`: a size is a whole number from 0 to 1099511627776",
            ),
            (
                "99999999999999999999999,1\n",
                "line 1: column 1: `99999999999999999999999`: a size is a whole number from 0 to 1099511627776",
            ),
        ];
        for (text, expected) in cases {
            let error = Demand::read(&problem(Collective::AllToAll, 2, 1), text.as_bytes());
            assert_eq!(error.expect_err(text).to_string(), expected);
        }
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let error = Demand::read(&problem(Collective::AllToAll, 2, 1), endless);
        assert_eq!(
            error.expect_err("endless").to_string(),
            "line 1: the line is longer than 2 sizes"
        );
        for text in ["uniform", "uniform:", "uniform:-1", "zipf:1"] {
            assert!(text.parse::<Drawn>().is_err(), "{text}");
        }
        let most = problem(Collective::AllToAll, 2, MAX_BLOCK_BYTES);
        assert!(Demand::drawn(&most, Drawn { law: Law::Sparse, seed: 1 }).is_err());
    }
}
