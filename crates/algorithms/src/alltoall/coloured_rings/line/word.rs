//! Colours along a side, and the rings that ranks of one colour form.

/// The word of colours along a side. Any word is free of contention; a good one balances rings.
pub(super) enum Word {
    /// 0, 1, .. m-1 over and over.
    Repeated { side: u32, colours: u32 },
    /// The colours evenly spaced: colour c, of L, stands where the fractions `(j + c/m) / L`,
    /// j = 0 .. L-1, rank among those of all m colours. Gaps of m-1, m and m+1 mix.
    Even { colour: Vec<u32>, index: Vec<u32>, rings: Vec<Vec<u32>> },
}

impl Word {
    /// A word around a ring; repeated where that comes out even.
    pub(super) fn around(side: u32, colours: u32) -> Self {
        if side % colours == 0 {
            return Self::Repeated { side, colours };
        }
        let length = |c: u32| side / colours + u32::from(c >= colours - side % colours);
        let mut rings: Vec<Vec<u32>> = (0..colours).map(|_| Vec::new()).collect();
        let [mut colour, mut index] = [(); 2].map(|()| Vec::with_capacity(side as usize));
        for x in 0..side {
            let fraction = |c: u32| {
                let j = rings[c as usize].len() as u64;
                (j * u64::from(colours) + u64::from(c), u64::from(length(c)))
            };
            let least = (0..colours).filter(|&c| rings[c as usize].len() < length(c) as usize);
            let least = least.min_by(|&a, &b| {
                let ((a, of_a), (b, of_b)) = (fraction(a), fraction(b));
                (a * of_b).cmp(&(b * of_a))
            });
            let c = least.expect("lengths add up to the side");
            colour.push(c);
            index.push(rings[c as usize].len() as u32);
            rings[c as usize].push(x);
        }
        Self::Even { colour, index, rings }
    }

    pub(super) fn side(&self) -> u32 {
        match self {
            Self::Repeated { side, .. } => *side,
            Self::Even { colour, .. } => colour.len() as u32,
        }
    }

    /// The colour of position x.
    pub(super) fn colour(&self, x: u32) -> u32 {
        match self {
            Self::Repeated { colours, .. } => x % colours,
            Self::Even { colour, .. } => colour[x as usize],
        }
    }

    /// The number of position x among those of its colour.
    pub(super) fn index(&self, x: u32) -> u32 {
        match self {
            Self::Repeated { colours, .. } => x / colours,
            Self::Even { index, .. } => index[x as usize],
        }
    }

    /// The number of positions of a colour.
    pub(super) fn ring(&self, colour: u32) -> u32 {
        match self {
            Self::Repeated { side, colours } => side.saturating_sub(colour).div_ceil(*colours),
            Self::Even { rings, .. } => rings[colour as usize].len() as u32,
        }
    }

    /// The gap from the i-th position of a colour to the next around the ring.
    pub(super) fn gap(&self, colour: u32, i: u32) -> u32 {
        let next = if i + 1 == self.ring(colour) { 0 } else { i + 1 };
        let [from, to] = [i, next].map(|i| self.position(colour, i));
        if to > from { to - from } else { to + self.side() - from }
    }

    /// Where the gap of a colour is not the one before it.
    pub(super) fn turns(&self, colour: u32) -> Vec<u32> {
        let ring = self.ring(colour);
        let mut before = if ring > 0 { self.gap(colour, ring - 1) } else { 0 };
        let differs = |&i: &u32| {
            let gap = self.gap(colour, i);
            std::mem::replace(&mut before, gap) != gap
        };
        (0..ring).filter(differs).collect()
    }

    /// Whether no two gaps of a colour differ by more than 1.
    pub(super) fn is_even(&self, colours: u32) -> bool {
        (0..colours).all(|colour| {
            let gaps = || (0..self.ring(colour)).map(|i| self.gap(colour, i));
            gaps().max().zip(gaps().min()).is_none_or(|(most, least)| most - least <= 1)
        })
    }

    /// The i-th position of a colour.
    pub(super) fn position(&self, colour: u32, i: u32) -> u32 {
        match self {
            Self::Repeated { colours, .. } => i * colours + colour,
            Self::Even { rings, .. } => rings[colour as usize][i as usize],
        }
    }
}
