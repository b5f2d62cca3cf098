//! Walkers and what is fetched for them.

use tablemount_api::TableName;

use super::*;

fn scope(reverse: bool) -> Scope {
    Scope {
        table: TableName::new("t").expect("valid"),
        at: None,
        latest: false,
        reverse,
    }
}

fn row(number: u64) -> Place {
    Place::row(format!("{number:08}").into())
}

/// Visits rows in order, each known if it lies in what was fetched last; returns what was fetched.
fn walk(rows: impl Iterator<Item = u64>, pace: Duration, inside: bool) -> Vec<u64> {
    let scope = scope(false);
    let mut walks = Walks::new(2000);
    let start = Instant::now();
    let (mut now, mut fetched) = (start, Vec::new());
    let mut known: (u64, u64, Instant) = (0, 0, start);
    for number in rows {
        let is_known = (known.0..known.1).contains(&number) && now.duration_since(known.2) < TTL;
        if is_known {
            walks.hit(&scope, &row(number), false, now);
        } else {
            let ahead = walks.miss(&scope, &row(number), false, now);
            known = (number, number + ahead.places, now);
            fetched.push(ahead.places);
        }
        if inside {
            walks.hit(&scope, &row(number), true, now);
        }
        now += pace;
    }
    fetched
}

#[test]
fn a_thorough_walker_is_soon_far_ahead() {
    let fetched = walk(0..10_000, Duration::from_micros(100), true);
    assert_eq!(fetched[..5], [1, 16, 256, 2000, 2000]);
    assert!(fetched.len() <= 8, "{fetched:?}");
}

#[test]
fn a_slow_walker_gets_what_it_can_use_in_time() {
    let fetched = walk(0..3000, Duration::from_millis(5), true);
    assert!(
        fetched
            .iter()
            .skip(3)
            .all(|places| (100..=256).contains(places)),
        "{fetched:?}"
    );
    assert!(fetched.len() <= 20, "{fetched:?}");
}

#[test]
fn one_visit_every_other_second_asks_for_nothing_ahead() {
    assert_eq!(walk(0..5, Duration::from_secs(2), true), [1; 5]);
}

#[test]
fn who_skips_most_rows_gets_little() {
    let fetched = walk(
        (0..100).map(|number| number * 1000),
        Duration::from_micros(100),
        true,
    );
    assert!(fetched.iter().all(|places| *places <= 16), "{fetched:?}");
}

#[test]
fn going_back_is_no_walk() {
    let fetched = walk((0..50).rev(), Duration::from_micros(100), true);
    assert_eq!(fetched, [1; 50]);
}

#[test]
fn whether_rows_are_entered_is_noticed() {
    let (scope, now) = (scope(false), Instant::now());
    let mut walks = Walks::new(2000);
    assert_eq!(
        walks.miss(&scope, &row(1), false, now),
        Ahead {
            places: 1,
            inside: true
        }
    );
    assert_eq!(
        walks.miss(&scope, &row(2), false, now),
        Ahead {
            places: 16,
            inside: false
        }
    );
    walks.hit(&scope, &row(3), true, now);
    walks.hit(&scope, &row(12), false, now);
    (4..12).for_each(|number| walks.hit(&scope, &row(number), false, now));
    assert!(walks.miss(&scope, &row(20), false, now).inside);
}

#[test]
fn a_reverse_view_is_walked_downwards() {
    let (scope, now) = (scope(true), Instant::now());
    let mut walks = Walks::new(2000);
    walks.miss(&scope, &row(9), true, now);
    assert_eq!(walks.miss(&scope, &row(8), true, now).places, 16);
    assert_eq!(walks.miss(&scope, &row(20), true, now).places, 1);
}

#[test]
fn walkers_do_not_disturb_each_other() {
    let (scope, now) = (scope(false), Instant::now());
    let mut walks = Walks::new(2000);
    for number in [5000, 1] {
        walks.miss(&scope, &row(number), true, now);
        assert_eq!(walks.miss(&scope, &row(number + 1), true, now).places, 16);
    }
    (3..17).for_each(|number| walks.hit(&scope, &row(number), true, now));
    assert_eq!(walks.miss(&scope, &row(18), true, now).places, 256);
}

#[test]
fn who_is_caught_inside_a_row_when_its_second_ends_goes_on_by_rows() {
    let (scope, start) = (scope(false), Instant::now());
    let mut walks = Walks::new(2000);
    walks.miss(&scope, &row(1), true, start);
    walks.miss(&scope, &row(2), true, start);
    (3..12).for_each(|number| walks.hit(&scope, &row(number), true, start));
    assert_eq!(walks.resume(&scope, &row(11), start), None);
    let places = walks
        .resume(&scope, &row(11), start + TTL)
        .map(|ahead| ahead.places);
    assert_eq!(places, Some(10));
    // What came from there was but one row.
    walks.got(&scope, &row(11), 1);
    assert_eq!(walks.resume(&scope, &row(11), start + TTL * 2), None);
}
