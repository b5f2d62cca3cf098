//! Whether a history of one column is linearizable: whether there is an order of its operations, each at some moment between
//! its call and its answer, in which every answer is right (Wing & Gong's search, with Lowe's memory of what was tried).

use std::collections::HashSet;

use bytes::Bytes;

/// The most operations of a history: one bit each.
pub(super) const MAX_OPERATIONS: usize = 63;

/// A column's newest value.
pub(super) type State = Option<Bytes>;

/// What was asked, and what was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Put(Bytes),
    Delete,
    /// By how much, and the value it came to.
    Increment(i64, Bytes),
    /// What was appended, and the value it came to.
    Append(Bytes, Bytes),
    /// What must be there, what is put then, and whether it was.
    CheckAndPut(State, Bytes, bool),
    Read(State),
}

/// An operation and when it was called and answered, on a clock that all threads share.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) called: u64,
    pub(super) answered: u64,
    pub(super) operation: Operation,
}

/// The state after the operation, if its answer is right in `state`.
fn step(state: &State, operation: &Operation) -> Option<State> {
    match operation {
        Operation::Put(value) => Some(Some(value.clone())),
        Operation::Delete => Some(None),
        Operation::Increment(by, answer) => {
            let old = match state {
                Some(bytes) => i64::from_be_bytes(bytes[..].try_into().ok()?),
                None => 0,
            };
            (old.wrapping_add(*by).to_be_bytes() == answer[..]).then(|| Some(answer.clone()))
        }
        Operation::Append(tail, answer) => {
            let old = state.as_deref().unwrap_or_default();
            (answer.strip_prefix(old)? == tail).then(|| Some(answer.clone()))
        }
        Operation::CheckAndPut(expected, value, applied) => {
            let holds = state == expected;
            (holds == *applied).then(|| match holds {
                true => Some(value.clone()),
                false => state.clone(),
            })
        }
        Operation::Read(answer) => (state == answer).then(|| state.clone()),
    }
}

/// Whether the history can be put in order, from `initial` on.
pub(super) fn is_linearizable(initial: &State, history: &[Event]) -> bool {
    assert!(history.len() <= MAX_OPERATIONS, "{}", history.len());
    let all = (1u64 << history.len()) - 1;
    let (mut tried, mut open) = (HashSet::new(), vec![(0u64, initial.clone())]);
    while let Some((done, state)) = open.pop() {
        if done == all {
            return true;
        }
        if !tried.insert((done, state.clone())) {
            continue;
        }
        let left = || (0..history.len()).filter(|i| done & (1 << i) == 0);
        // What was called after another was answered comes after it.
        let first_answer = left().map(|i| history[i].answered).min();
        let next = left().filter(|i| Some(history[*i].called) < first_answer);
        open.extend(next.filter_map(|i| {
            let after = step(&state, &history[i].operation)?;
            Some((done | (1 << i), after))
        }));
    }
    false
}

mod tests {
    use super::*;

    fn text(value: &str) -> Bytes {
        Bytes::copy_from_slice(value.as_bytes())
    }

    fn number(value: i64) -> Bytes {
        Bytes::copy_from_slice(&value.to_be_bytes())
    }

    fn read(value: &str) -> Operation {
        Operation::Read(Some(text(value)))
    }

    fn put(value: &str) -> Operation {
        Operation::Put(text(value))
    }

    /// Operations with the times of their call and answer, on an empty column.
    fn check(history: &[(u64, u64, Operation)], expected: bool) {
        let events: Vec<_> = history
            .iter()
            .map(|(called, answered, operation)| Event {
                called: *called,
                answered: *answered,
                operation: operation.clone(),
            })
            .collect();
        assert_eq!(is_linearizable(&None, &events), expected, "{history:?}");
    }

    #[test]
    fn what_one_after_the_other_gives_is_right() {
        check(&[], true);
        check(
            &[
                (1, 2, Operation::Read(None)),
                (3, 4, put("a")),
                (5, 6, Operation::Append(text("b"), text("ab"))),
                (7, 8, read("ab")),
                (
                    9,
                    10,
                    Operation::CheckAndPut(Some(text("ab")), number(6), true),
                ),
                (11, 12, Operation::Increment(-7, number(-1))),
                (13, 14, Operation::CheckAndPut(None, text("x"), false)),
                (15, 16, Operation::Read(Some(number(-1)))),
                (17, 18, Operation::Delete),
                (19, 20, Operation::Increment(2, number(2))),
            ],
            true,
        );
    }

    #[test]
    fn what_overlaps_may_come_in_either_order() {
        for seen in ["a", "b"] {
            check(
                &[(1, 4, put("a")), (2, 3, put("b")), (5, 6, read(seen))],
                true,
            );
            check(
                &[(1, 2, put("a")), (3, 6, put("b")), (4, 5, read(seen))],
                true,
            );
        }
    }

    #[test]
    fn a_lost_update_is_noticed() {
        let one = Operation::Increment(1, number(1));
        check(&[(1, 3, one.clone()), (2, 4, one)], false);
        let both = [
            (1, 3, Operation::Append(text("a"), text("a"))),
            (2, 4, Operation::Append(text("b"), text("b"))),
        ];
        check(&both, false);
        check(
            &[
                (1, 4, put("a")),
                (2, 5, Operation::Append(text("b"), text("b"))),
                (6, 7, read("b")),
            ],
            false,
        );
    }

    #[test]
    fn a_stale_read_is_noticed() {
        check(
            &[(1, 2, put("a")), (3, 4, put("b")), (5, 6, read("a"))],
            false,
        );
        check(&[(1, 2, put("a")), (3, 4, Operation::Read(None))], false);
    }

    #[test]
    fn a_read_that_goes_back_is_noticed() {
        let seen = [
            (1, 2, put("a")),
            (3, 10, put("b")),
            (4, 5, read("b")),
            (6, 7, read("a")),
        ];
        check(&seen, false);
        check(
            &[
                seen[0].clone(),
                seen[1].clone(),
                (4, 7, read("b")),
                (5, 6, read("a")),
            ],
            true,
        );
    }

    #[test]
    fn a_value_nobody_wrote_is_noticed() {
        check(&[(1, 4, put("a")), (2, 3, read("b"))], false);
    }

    #[test]
    fn checks_that_both_hold_are_noticed() {
        let taken = |value: &str, applied| Operation::CheckAndPut(None, text(value), applied);
        check(&[(1, 3, taken("a", true)), (2, 4, taken("b", true))], false);
        check(&[(1, 3, taken("a", true)), (2, 4, taken("b", false))], true);
        check(
            &[(1, 3, taken("a", false)), (2, 4, taken("b", false))],
            false,
        );
    }
}
