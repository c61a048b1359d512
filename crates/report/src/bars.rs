//! A page without scripts: an answer, and choices with bars of their times.

use crate::number::seconds;
use crate::page::{escaped, filled, whole};

const HTML: &str = include_str!("page/bars.html");

/// The length of the longest bar.
const LONGEST: f64 = 1000.0;

/// Choices by time, as a page.
#[derive(Clone, Debug)]
pub struct Bars<'a> {
    /// The title.
    pub title: &'a str,
    /// The answer, in a sentence.
    pub answer: &'a str,
    /// What was asked.
    pub about: &'a str,
    /// The names of the parts of each bar, four at most.
    pub parts: &'a [&'a str],
    /// The columns before the bars.
    pub header: &'a [&'a str],
    /// The choices.
    pub rows: Vec<Bar>,
    /// Further lines.
    pub notes: &'a str,
}

/// A choice.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The text of its columns.
    pub cells: Vec<String>,
    /// The seconds of each part.
    pub seconds: Vec<f64>,
    /// The seconds of the bound on their sum.
    pub bound: f64,
}

impl Bar {
    fn sum(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// The parts one after the other, and a line at the bound.
    fn drawn(&self, scale: f64) -> String {
        let (mut at, mut parts) = (0.0, String::new());
        for (part, seconds) in self.seconds.iter().enumerate() {
            let long = seconds * scale;
            parts += &format!(
                "<rect class=\"bar term-{part}\" x=\"{at:.2}\" width=\"{long:.2}\" height=\"10\"/>"
            );
            at += long;
        }
        let bound = self.bound * scale;
        let [sum, least] = [self.sum(), self.bound].map(seconds);
        format!(
            "<svg class=\"times\" viewBox=\"0 0 {LONGEST} 10\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"{sum}, at least {least}\">{parts}<path class=\"limit\" d=\"M{bound:.2} 0v10\"/></svg>"
        )
    }
}

impl Bars<'_> {
    /// One self-contained HTML file.
    #[must_use]
    pub fn html(&self) -> String {
        let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| format!("<{tag}>{}</{tag}>", escaped(text))).collect::<String>()
        };
        let scale = LONGEST / self.rows.iter().map(Bar::sum).fold(f64::MIN_POSITIVE, f64::max);
        let header = cells("th", &mut self.header.iter().copied());
        let mut rows = format!("<tr>{header}<th>time and bound</th></tr>\n");
        for bar in &self.rows {
            let own = cells("td", &mut bar.cells.iter().map(|cell| &**cell));
            rows += &format!("<tr>{own}<td class=\"wide\">{}</td></tr>\n", bar.drawn(scale));
        }
        let legend = self.parts.iter().enumerate().map(|(part, name)| {
            let square = format!("<svg width=\"12\" height=\"12\"><rect class=\"term-{part}\" width=\"12\" height=\"12\"/></svg>");
            format!("<li>{square} {}</li>", escaped(name))
        });
        let notes = self.notes.lines().map(|line| format!("<p>{}</p>", escaped(line)));
        let parts = [
            ("{{title}}", escaped(self.title)),
            ("{{answer}}", escaped(self.answer)),
            ("{{about}}", escaped(self.about)),
            ("{{legend}}", legend.collect()),
            ("{{rows}}", rows),
            ("{{notes}}", notes.collect()),
        ];
        whole(self.title, "", filled(HTML, parts))
    }
}
