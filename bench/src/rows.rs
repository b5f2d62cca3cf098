//! The rows of all benchmarks: keys, values and the orders in which they are written and read.
//!
//! A key is `row-` and twenty decimal digits, 24 bytes; stored rows have even numbers, so that the odd ones are absent keys
//! between them. A value is 100 bytes: the row's number in eight, 42 pseudo-random ones, and 50 that are the same in every row.
//!
//! **Invariants**: an order visits each row of its range once; everything is a function of its numbers, so all subjects get
//! the same keys, values and orders.

/// Bytes of a key.
pub const KEY_BYTES: usize = 24;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;
/// Bytes of a row as its writer counts them.
pub const ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// What half of each value is.
const FILL: &[u8; 50] = b"the same fifty bytes stand in every value of it.  ";

/// A row's key.
pub type Key = [u8; KEY_BYTES];

/// The key of a stored row.
pub fn key(row: u64) -> Key {
    digits(2 * row)
}

/// A key that is not stored, just behind a row's.
pub fn absent_key(row: u64) -> Key {
    digits(2 * row + 1)
}

fn digits(mut number: u64) -> Key {
    let mut key = *b"row-00000000000000000000";
    let mut place = KEY_BYTES;
    while number > 0 && place > 4 {
        place -= 1;
        key[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    key
}

/// A row's value.
pub fn value(row: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..8].copy_from_slice(&row.to_le_bytes());
    Random::new(row).fill(&mut value[8..50]);
    value[50..].copy_from_slice(FILL);
    value
}

/// Which row a value is of.
pub fn row_of(value: &[u8]) -> Option<u64> {
    value
        .first_chunk()
        .map(|number| u64::from_le_bytes(*number))
}

/// A pseudo-random order of the rows `0..rows`: a permutation, computed and not stored.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    rows: u64,
    bits: u32,
    seed: u64,
}

impl Order {
    /// The order that rows are loaded in.
    pub fn of_load(rows: u64) -> Self {
        Self::new(rows, 1)
    }

    /// The order that rows are read in.
    pub fn of_reads(rows: u64) -> Self {
        Self::new(rows, 2)
    }

    /// An order of `rows` rows, at least one.
    pub fn new(rows: u64, seed: u64) -> Self {
        let bits = (u64::BITS - rows.saturating_sub(1).leading_zeros()).max(2);
        Self { rows, bits, seed }
    }

    /// The row at a place; places wrap at the number of rows.
    pub fn row(&self, place: u64) -> u64 {
        let mut row = place % self.rows;
        loop {
            row = self.mix(row);
            if row < self.rows {
                return row;
            }
        }
    }

    /// A bijection of the numbers of `bits` bits: what it takes beyond `rows` is mixed again.
    fn mix(&self, mut x: u64) -> u64 {
        let (mask, shift) = (u64::MAX >> (u64::BITS - self.bits), self.bits / 2 + 1);
        x = x.wrapping_add(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & mask;
        for factor in [
            0xd6e8_feb8_6659_fd93_u64,
            0xbf58_476d_1ce4_e5b9,
            0x94d0_49bb_1331_11eb,
        ] {
            x = x.wrapping_mul(factor) & mask;
            x ^= x >> shift;
        }
        x
    }
}

/// Pseudo-random numbers (xorshift64*).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number below `limit`, at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_visits_each_row_once() {
        for rows in [1, 2, 3, 1000, 1024, 1025] {
            let mut seen: Vec<_> = (0..rows)
                .map(|place| Order::of_load(rows).row(place))
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..rows).collect::<Vec<_>>(), "{rows} rows");
        }
    }

    #[test]
    fn neighbours_in_an_order_are_not_neighbours_as_keys() {
        let order = Order::of_load(1_000_000);
        let near = (0..1000)
            .filter(|place| order.row(*place).abs_diff(order.row(place + 1)) < 1000)
            .count();
        assert!(near < 20, "{near} of 1000");
    }

    #[test]
    fn keys_sort_as_their_rows_and_absent_ones_stand_between() {
        assert_eq!(&key(512), b"row-00000000000000001024");
        assert!(key(9) < absent_key(9) && absent_key(9) < key(10));
        assert!(key(u64::from(u32::MAX)) < key(u64::from(u32::MAX) + 1));
    }

    #[test]
    fn a_value_tells_its_row() {
        assert_eq!(row_of(&value(77)), Some(77));
        assert_eq!(row_of(b"short"), None);
    }
}
