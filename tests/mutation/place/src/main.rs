//! Writes the mutants that `cargo mutants --list --json` names into the sources, each behind a
//! switch. `place TREE LIST LEFT-OUT` changes the files below TREE, and prints the new place of
//! each mutant as a JSON line. It omits mutants whose numbers (positions in LIST) are in LEFT-OUT.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::{env, fs};

use proc_macro2::LineColumn;
use serde::{Deserialize, Serialize};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A mutant as `cargo mutants` lists it.
#[derive(Deserialize)]
struct Mutant {
    file: String,
    genre: String,
    replacement: String,
    span: Place,
}

#[derive(Deserialize)]
struct Place {
    start: Corner,
}

/// Counted from 1.
#[derive(Deserialize)]
struct Corner {
    line: usize,
    column: usize,
}

/// A mutant's place in a changed file: bytes of its own code, and of all code in the same place.
#[derive(Serialize)]
struct Placed<'a> {
    mutant: usize,
    file: &'a str,
    own: Range<usize>,
    shared: Range<usize>,
}

/// A replacement for a part of the source.
enum Change {
    /// An expression: its prefix, and each mutant's expression.
    Instead(String, Vec<(usize, String)>),
    /// Statements before all others of a body: the value that each mutant returns.
    Before(Vec<(usize, String)>),
    /// The guard of a match's arm, empty if it has none: mutants without the arm, and with a guard
    /// that always or never holds.
    Guard { without: Vec<usize>, always: Vec<usize>, never: Vec<usize> },
}

/// A file's mutants by their start, and their changes.
struct Finder<'a> {
    lines: Vec<usize>,
    source: &'a str,
    mutants: BTreeMap<usize, Vec<(usize, &'a Mutant)>>,
    changes: Vec<(Range<usize>, Change)>,
}

impl<'a> Finder<'a> {
    fn byte(&self, line: usize, column: usize) -> usize {
        let rest = &self.source[self.lines[line - 1]..];
        let within = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        self.lines[line - 1] + within
    }

    fn start(&self, LineColumn { line, column }: LineColumn) -> usize {
        self.byte(line, column)
    }

    fn range(&self, what: &impl Spanned) -> Range<usize> {
        self.start(what.span().start())..self.start(what.span().end())
    }

    fn text(&self, what: &impl Spanned) -> &'a str {
        &self.source[self.range(what)]
    }

    /// The mutants of a genre that start at a place.
    fn at(&self, place: usize, genre: &str) -> Vec<(usize, &'a Mutant)> {
        let all = self.mutants.get(&place).into_iter().flatten();
        all.filter(|(_, mutant)| mutant.genre == genre).copied().collect()
    }

    fn instead(&mut self, whole: &impl Spanned, others: Vec<(usize, String)>) {
        if !others.is_empty() {
            self.changes.push((self.range(whole), Change::Instead(String::new(), others)));
        }
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        // An `impl` type has one concrete type, so a mutant cannot return another value.
        let hidden = self.text(&signature.output).contains("impl ");
        let Some(first) = block.stmts.first().filter(|_| !hidden) else { return };
        let first = self.range(first).start;
        let returned: Vec<_> = (self.at(first, "FnValue").into_iter())
            .map(|(number, mutant)| (number, mutant.replacement.clone()))
            .collect();
        if !returned.is_empty() {
            self.changes.push((first..first, Change::Before(returned)));
        }
    }

    /// An arm of a match; `spare`: the match compiles without it.
    fn arm(&mut self, arm: &syn::Arm, spare: bool) {
        let (whole, after) = (self.range(arm), self.range(&arm.pat).end);
        let without = if spare { numbers(&self.at(whole.start, "MatchArm")) } else { Vec::new() };
        let (place, guards) = match &arm.guard {
            Some((_, guard)) if binds(guard) => return,
            Some((_, guard)) => {
                let place = self.range(guard);
                let guards = self.at(place.start, "MatchArmGuard");
                (place, guards)
            }
            None => (after..after, Vec::new()),
        };
        let (always, never): (Vec<_>, Vec<_>) =
            guards.into_iter().partition(|(_, mutant)| mutant.replacement == "true");
        if without.len() + always.len() + never.len() > 0 {
            let (always, never) = (numbers(&always), numbers(&never));
            self.changes.push((place, Change::Guard { without, always, never }));
        }
    }
}

/// Whether an arm of a match takes every value.
fn takes_the_rest(arm: &syn::Arm) -> bool {
    let whatever = match &arm.pat {
        syn::Pat::Wild(_) => true,
        syn::Pat::Ident(name) => name.ident.to_string().starts_with(char::is_lowercase),
        _ => false,
    };
    whatever && arm.guard.is_none()
}

/// The numbers of mutants.
fn numbers(mutants: &[(usize, &Mutant)]) -> Vec<usize> {
    mutants.iter().map(|&(number, _)| number).collect()
}

/// Whether a condition binds names: a part of it is not an expression by itself.
fn binds(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => binds(&both.left) || binds(&both.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let (left, right) = (self.text(&both.left), self.text(&both.right));
        if !binds(&both.left) && !binds(&both.right) {
            let others = self.at(self.range(&both.op).start, "BinaryOperator");
            let other = |m: &Mutant| format!("({left}) {} ({right})", m.replacement);
            self.instead(both, others.into_iter().map(|(n, m)| (n, other(m))).collect());
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let others = self.at(self.range(&unary.op).start, "UnaryOperator");
        let text = self.text(&unary.expr);
        self.instead(unary, others.into_iter().map(|(n, _)| (n, format!("({text})"))).collect());
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_struct(&mut self, built: &'ast syn::ExprStruct) {
        for field in &built.fields {
            let whole = self.range(field);
            let (Some(rest), Some(&(number, _))) =
                (&built.rest, self.at(whole.start, "StructField").first())
            else {
                continue;
            };
            let (path, name) = (self.text(&built.path), self.text(&field.member));
            let rest = match self.text(rest) {
                "Default::default()" => format!("<{path} as Default>::default()"),
                rest => format!("({rest})"),
            };
            let others = vec![(number, format!("{rest}.{name}.clone()"))];
            let before =
                if field.colon_token.is_some() { String::new() } else { format!("{name}: ") };
            self.changes.push((self.range(&field.expr), Change::Instead(before, others)));
        }
        visit::visit_expr_struct(self, built);
    }

    fn visit_expr_match(&mut self, of: &'ast syn::ExprMatch) {
        // Without an arm for all other values, no arm would take the values that a guard excludes.
        let rest = of.arms.iter().position(takes_the_rest);
        for (i, arm) in of.arms.iter().enumerate() {
            self.arm(arm, rest.is_some_and(|rest| i < rest));
        }
        visit::visit_expr_match(self, of);
    }
}

/// Source with changes, which are nested or disjoint.
struct Writer<'a> {
    source: &'a str,
    changes: &'a [(Range<usize>, Change)],
    next: usize,
    out: String,
    placed: Vec<(usize, Range<usize>, Range<usize>)>,
}

impl Writer<'_> {
    /// Writes a part of the source with its changes.
    fn write(&mut self, part: Range<usize>) {
        let mut at = part.start;
        while let Some((place, change)) = self.changes.get(self.next)
            && place.end <= part.end
        {
            self.next += 1;
            self.out.push_str(&self.source[at..place.start]);
            at = place.end;
            let begin = self.out.len();
            let first = self.placed.len();
            match change {
                Change::Instead(before, others) => {
                    self.out.push_str(before);
                    self.out.push('(');
                    for (number, other) in others {
                        self.alive(*number, other);
                        self.out.push_str(" else ");
                    }
                    self.out.push_str("{ (");
                    self.write(place.clone());
                    self.out.push_str(") })");
                }
                Change::Before(returned) => {
                    for (number, value) in returned {
                        self.alive(*number, &format!("return {value};"));
                        self.out.push(' ');
                    }
                }
                Change::Guard { without, always, never } => {
                    let any = |numbers: &[usize]| {
                        let all = numbers.iter().map(|n| format!("::switch::on({n})"));
                        all.fold("false".to_owned(), |any, one| any + " || " + &one)
                    };
                    let own = self.out.len();
                    if place.is_empty() {
                        self.out.push_str(&format!(" if !({})", any(without)));
                    } else {
                        let [without, always, never] = [without, always, never].map(|n| any(n));
                        let guard = format!("!({without}) && (({always}) || !({never}) && (");
                        self.out.push_str(&guard);
                        self.write(place.clone());
                        self.out.push_str("))");
                    }
                    for &number in without.iter().chain(always).chain(never) {
                        self.placed.push((number, own..self.out.len(), own..self.out.len()));
                    }
                }
            }
            let end = self.out.len();
            for (_, _, shared) in &mut self.placed[first..] {
                if *shared == (0..0) {
                    *shared = begin..end;
                }
            }
        }
        self.out.push_str(&self.source[at..part.end]);
    }

    fn alive(&mut self, number: usize, text: &str) {
        let begin = self.out.len();
        self.out.push_str(&format!("if ::switch::on({number}) {{ {text} }}"));
        self.placed.push((number, begin..self.out.len(), 0..0));
    }
}

fn main() {
    let [tree, list, left_out] = [1, 2, 3].map(|i| env::args().nth(i).expect("three arguments"));
    let read = |file: &Path| fs::read_to_string(file).expect("the file can be read");
    let mutants: Vec<Mutant> = serde_json::from_str(&read(Path::new(&list))).expect("a list");
    let left_out: BTreeSet<usize> =
        serde_json::from_str(&read(Path::new(&left_out))).expect("numbers");
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate().filter(|(n, _)| !left_out.contains(n)) {
        files.entry(&mutant.file).or_default().push((number, mutant));
    }
    for (file, of_file) in files {
        let path = Path::new(&tree).join(file);
        let source = read(&path);
        let syntax = syn::parse_file(&source).expect("the file is Rust");
        let ends = source.match_indices('\n').map(|(at, _)| at + 1);
        let lines = [0].into_iter().chain(ends).collect();
        let mut finder =
            Finder { lines, source: &source, mutants: BTreeMap::new(), changes: Vec::new() };
        for (number, mutant) in of_file {
            let Corner { line, column } = mutant.span.start;
            let place = finder.byte(line, column - 1);
            finder.mutants.entry(place).or_default().push((number, mutant));
        }
        finder.visit_file(&syntax);
        let mut changes = finder.changes;
        // Outer changes come before the changes inside them.
        changes.sort_by_key(|(place, change)| {
            (place.start, !matches!(change, Change::Before(_)), usize::MAX - place.end)
        });
        let mut writer = Writer {
            source: &source,
            changes: &changes,
            next: 0,
            out: String::new(),
            placed: Vec::new(),
        };
        writer.write(0..source.len());
        fs::write(&path, &writer.out).expect("the file can be written");
        for (mutant, own, shared) in writer.placed {
            let placed = Placed { mutant, file, own, shared };
            println!("{}", serde_json::to_string(&placed).expect("numbers and names"));
        }
    }
}
