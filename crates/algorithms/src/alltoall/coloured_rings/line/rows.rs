//! Rows of a few items each, side by side in memory.

/// Rows, by number.
pub(super) struct Rows<T> {
    items: Vec<T>,
    ends: Vec<usize>,
}

impl<T> Rows<T> {
    /// No rows, with room for a number of rows and of items.
    pub(super) fn with_room(rows: u32, items: u32) -> Self {
        let room = rows as usize * items as usize;
        Self { items: Vec::with_capacity(room), ends: Vec::with_capacity(rows as usize) }
    }

    pub(super) fn push(&mut self, row: impl IntoIterator<Item = T>) {
        self.items.extend(row);
        self.ends.push(self.items.len());
    }

    pub(super) fn row(&self, number: usize) -> &[T] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.items[start..self.ends[number]]
    }
}
