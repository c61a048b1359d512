//! Lists of numbers as text, most of them one character each; `page/packed.js` reads it.
//!
//! A number is written as its difference from the one `WIDTH` before it, and a list after its length over `WIDTH`.
//! Differences have digits to base 90, the least significant first: numbers below 48 are one digit, digits from 48
//! on begin a longer number, and digits from 80 on are runs of zeros.

use serde::Serializer;

const ONE: u128 = 48;
const MORE: u128 = 32;
const ZEROS: u128 = ONE + MORE;
const LONGEST: u128 = 11;

/// Writes lists whose lengths are multiples of `WIDTH`.
pub(super) fn lists<const WIDTH: usize, R, N, S>(lists: &[R], to: S) -> Result<S::Ok, S::Error>
where
    R: AsRef<[N]>,
    N: Copy + TryInto<i128>,
    S: Serializer,
{
    let mut out = Digits::default();
    let mut before = [0; WIDTH];
    for list in lists {
        let list = list.as_ref();
        out.number((list.len() / WIDTH) as i128);
        for (i, &number) in list.iter().enumerate() {
            let number = number.try_into().ok().expect("bug: a number above all counts of bytes");
            out.number(number - before[i % WIDTH]);
            before[i % WIDTH] = number;
        }
    }
    out.zeros();
    to.serialize_str(&out.text)
}

/// Writes one list.
pub(super) fn list<N: Copy + TryInto<i128>, S: Serializer>(
    list: &[N],
    to: S,
) -> Result<S::Ok, S::Error> {
    lists::<1, _, _, _>(&[list], to)
}

#[derive(Default)]
struct Digits {
    text: String,
    /// Zeros that are not written yet.
    zeros: u128,
}

impl Digits {
    fn number(&mut self, number: i128) {
        if number == 0 {
            self.zeros += 1;
            return;
        }
        self.zeros();
        let twice = 2 * number.unsigned_abs();
        let mut rest = if number > 0 { twice - 1 } else { twice };
        while rest >= ONE {
            rest -= ONE;
            self.digit(ONE + rest % MORE);
            rest /= MORE;
        }
        self.digit(rest);
    }

    fn zeros(&mut self) {
        while self.zeros > 0 {
            let count = self.zeros.min(LONGEST);
            self.digit(if count == 1 { 0 } else { ZEROS + count - 2 });
            self.zeros -= count;
        }
    }

    /// Writes a digit as a character that JSON and HTML do not escape.
    fn digit(&mut self, digit: u128) {
        let code = b'#' + digit as u8;
        let code = if code >= b'<' { code + 1 } else { code };
        self.text.push(char::from(if code >= b'\\' { code + 1 } else { code }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of a text, as the page reads them.
    fn read(text: &str, width: usize) -> Vec<Vec<i128>> {
        let digit = |c: u8| c - b'#' - u8::from(c > b'<') - u8::from(c > b'\\');
        let mut digits = text.bytes().map(|c| u128::from(digit(c)));
        let (mut numbers, mut before) = (Vec::new(), vec![0; width]);
        while let Some(first) = digits.next() {
            if first >= ZEROS {
                numbers.resize(numbers.len() + (first - ZEROS) as usize + 2, 0);
                continue;
            }
            let (mut twice, mut unit, mut last) = (first, 1, first);
            while last >= ONE {
                unit *= MORE;
                last = digits.next().unwrap();
                twice += unit * last;
            }
            let half = twice.div_ceil(2) as i128;
            numbers.push(if twice % 2 == 1 { half } else { -half });
        }
        let (mut numbers, mut lists) = (numbers.into_iter(), Vec::new());
        while let Some(length) = numbers.next() {
            let mut next = |i: usize| {
                before[i % width] += numbers.next().unwrap();
                before[i % width]
            };
            lists.push((0..length as usize * width).map(&mut next).collect());
        }
        lists
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..300 {
            // Numbers of all sizes, lists of all lengths, and more zeros than one digit holds.
            let mut given = vec![Vec::new(); next(30) as usize];
            for _ in 0..next(6) {
                let length = 3 * next(20);
                given.push((0..length).map(|_| (i128::from(next(40)) - 20) << next(90)).collect());
            }
            let text = serde_json::to_string(&Lists(&given)).unwrap();
            assert_eq!(read(&text[1..text.len() - 1], 3), given, "{text}");
        }
    }

    struct Lists<'a>(&'a [Vec<i128>]);

    impl serde::Serialize for Lists<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            lists::<3, _, _, _>(self.0, to)
        }
    }
}
