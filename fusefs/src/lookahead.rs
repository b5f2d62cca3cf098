//! Decides how much to ask for: pure.
//!
//! Programs that walk a tree (find, grep -r, cp -r, tar, ls -l) visit places in listing order. A [`Walk`] follows one such
//! program; each time it comes to a place that is not known, more is asked for ahead, as long as it used what it got.
//!
//! **Invariants**: the first two visits never ask ahead; who uses less than half of what was fetched gets no more next time
//! than it used; what is asked ahead stays within the caller's ceiling.

use std::time::{Duration, Instant};

use crate::place::Place;
use crate::window::{Scope, TTL};

const MAX_WALKS: usize = 8;
const FORGET_AFTER: Duration = Duration::from_secs(5);
const GROWTH: u64 = 16;

/// A program on its way through a table.
#[derive(Debug)]
struct Walk {
    scope: Scope,
    last: Place,
    seen: Instant,
    /// From where, when and how much was fetched last, and how much of that was visited.
    fetched_from: Place,
    fetched_at: Instant,
    fetched: u64,
    used: u64,
    /// Whether it went into the places it visited since the last fetch.
    inside: bool,
}

/// How much to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// How many places, the one asked for included.
    pub(crate) places: u64,
    /// Whether the walker goes into the places, or only looks whether they are there.
    pub(crate) inside: bool,
}

impl Ahead {
    /// Only the place asked for.
    pub(crate) const ALONE: Self = Self {
        places: 1,
        inside: true,
    };
}

/// The programs at work.
#[derive(Debug)]
pub(crate) struct Walks {
    walks: Vec<Walk>,
    ceiling: u64,
}

impl Walks {
    /// Never asks for more than `ceiling` places at a time.
    pub(crate) fn new(ceiling: u64) -> Self {
        Self {
            walks: Vec::new(),
            ceiling,
        }
    }

    /// Someone visited `place`, which was known.
    pub(crate) fn hit(&mut self, scope: &Scope, place: &Place, inside: bool, now: Instant) {
        if let Some(walk) = self.find(scope, place, now) {
            walk.advance(place, inside, now);
        }
    }

    /// Someone visited `place`, which was not known: how much to fetch from there on.
    pub(crate) fn miss(
        &mut self,
        scope: &Scope,
        place: &Place,
        inside: bool,
        now: Instant,
    ) -> Ahead {
        let ceiling = self.ceiling;
        if let Some(walk) = self.find(scope, place, now) {
            return walk.fetch(place, inside, now, ceiling);
        }
        self.walks
            .retain(|walk| now.saturating_duration_since(walk.seen) < FORGET_AFTER);
        if self.walks.len() >= MAX_WALKS
            && let Some(oldest) = (0..self.walks.len()).min_by_key(|index| self.walks[*index].seen)
        {
            self.walks.swap_remove(oldest);
        }
        self.walks.push(Walk {
            scope: scope.clone(),
            last: place.clone(),
            seen: now,
            fetched_from: place.clone(),
            fetched_at: now,
            fetched: 1,
            used: 0,
            inside,
        });
        Ahead::ALONE
    }

    /// Someone is inside `place`, which was fetched with others but is not known any more: how much to fetch from it on.
    /// `None`: it was not, or its inside was too much to come with others.
    pub(crate) fn resume(&mut self, scope: &Scope, place: &Place, now: Instant) -> Option<Ahead> {
        let ceiling = self.ceiling;
        let walk = self.find(scope, place, now)?;
        (walk.last == *place && walk.fetched > 1 && walk.is_expired(now))
            .then(|| walk.fetch(place, true, now, ceiling))
    }

    /// What was fetched last from `place` on were `places`, not what was planned.
    pub(crate) fn got(&mut self, scope: &Scope, place: &Place, places: u64) {
        let mut walks = self.walks.iter_mut();
        if let Some(walk) = walks.find(|walk| walk.scope == *scope && walk.fetched_from == *place) {
            walk.fetched = places;
        }
    }

    /// The walk that has come nearest to `place`.
    fn find(&mut self, scope: &Scope, place: &Place, now: Instant) -> Option<&mut Walk> {
        let candidates = self.walks.iter_mut().filter(|walk| {
            walk.scope == *scope
                && !walk.is_past(place)
                && now.saturating_duration_since(walk.seen) < FORGET_AFTER
        });
        candidates.reduce(|best, walk| if best.is_past(&walk.last) { best } else { walk })
    }
}

impl Walk {
    /// Whether `place` lies behind.
    fn is_past(&self, place: &Place) -> bool {
        let order = self.last.cmp_side(false, &place.before());
        if self.scope.reverse {
            order.is_lt()
        } else {
            order.is_gt()
        }
    }

    fn advance(&mut self, place: &Place, inside: bool, now: Instant) {
        if self.last != *place {
            self.last = place.clone();
            self.used += 1;
        }
        self.inside |= inside;
        self.seen = now;
    }

    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.fetched_at) >= TTL
    }

    fn fetch(&mut self, place: &Place, inside: bool, now: Instant, ceiling: u64) -> Ahead {
        let moved = self.fetched_from != *place;
        // What was fetched has expired: at its pace the walker needs no more than it used of it.
        let slow = self.is_expired(now);
        let thorough = (self.used + 1) * 2 >= self.fetched;
        let places = if moved && thorough && !slow {
            self.fetched * GROWTH
        } else {
            self.used
        };
        self.advance(place, inside, now);
        let ahead = Ahead {
            places: places.clamp(1, ceiling),
            inside: self.inside,
        };
        (self.fetched, self.fetched_at, self.used, self.inside) = (ahead.places, now, 1, inside);
        self.fetched_from = place.clone();
        ahead
    }
}

#[cfg(test)]
mod tests;
