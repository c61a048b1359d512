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
        let mut places: Vec<(u64, u64, u32)> = (0..colours)
            .flat_map(|c| {
                (0..length(c)).map(move |j| {
                    let numerator = u64::from(j) * u64::from(colours) + u64::from(c);
                    (numerator, u64::from(length(c)), c)
                })
            })
            .collect();
        places.sort_by_cached_key(|&(numerator, length, c)| {
            // Lengths differ by one at most, so this many parts tell all fractions apart.
            let parts = u128::from(side) * u128::from(side) + 1;
            (u128::from(numerator) * parts / u128::from(length), c)
        });
        let colour: Vec<u32> = places.iter().map(|&(_, _, c)| c).collect();
        let mut rings = vec![Vec::new(); colours as usize];
        let mut index = Vec::with_capacity(colour.len());
        for (x, &c) in colour.iter().enumerate() {
            let ring = &mut rings[c as usize];
            index.push(ring.len() as u32);
            ring.push(x as u32);
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
        let next = self.position(colour, (i + 1) % self.ring(colour));
        let gap = (next + self.side() - self.position(colour, i)) % self.side();
        if gap == 0 { self.side() } else { gap }
    }

    /// Where the gap of a colour is not the one before it.
    pub(super) fn turns(&self, colour: u32) -> Vec<u32> {
        let ring = self.ring(colour);
        let differs = |&i: &u32| self.gap(colour, i) != self.gap(colour, (i + ring - 1) % ring);
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
