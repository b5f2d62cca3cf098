//! What the module doc promises of every list of files.

use proptest::prelude::*;

use super::*;

fn sized(bytes: &[u64]) -> Vec<FileFacts> {
    let file = |bytes: &u64| FileFacts {
        bytes: *bytes,
        entries: *bytes,
        ..FileFacts::default()
    };
    bytes.iter().map(file).collect()
}

fn dying(entries: u64, dead: u64) -> FileFacts {
    FileFacts {
        bytes: entries,
        entries,
        dead,
        expired: false,
    }
}

fn check(files: &[FileFacts], expected: Option<(Range<usize>, Reason)>) {
    let chosen = choose(files).map(|choice| (choice.files, choice.reason));
    assert_eq!(chosen, expected, "{files:?}");
}

#[test]
fn young_files_go_into_the_base_once_they_are_a_share_of_it() {
    check(&[], None);
    check(&sized(&[10]), None);
    check(&sized(&[10, 10, 10]), None);
    check(&sized(&[10, 10, 10, 10]), Some((0..4, Reason::Base)));
    check(&sized(&[90, 10, 10, 9]), None);
    check(&sized(&[90, 10, 10, 10]), Some((0..4, Reason::Base)));
}

#[test]
fn young_files_of_similar_size_merge_among_themselves() {
    check(&sized(&[1000, 10, 10, 10, 10]), Some((1..5, Reason::Tier)));
    check(&sized(&[1000, 70, 10, 10, 10]), None);
    check(&sized(&[1000, 50, 10, 10, 10]), Some((1..5, Reason::Tier)));
    check(
        &sized(&[5000, 100, 100, 100, 100, 3]),
        Some((1..5, Reason::Tier)),
    );
    assert_eq!(
        choose_young(&sized(&[10, 10, 10, 10])),
        Choice::some(0..4, Reason::Tier),
        "beside a merge of older files there is no base"
    );
}

#[test]
fn too_many_files_are_brought_down_at_the_least_cost() {
    // Each is more than twice what is younger than it, so there is no tier.
    let steep: Vec<u64> = (0..MAX_FILES as u32 + 1)
        .rev()
        .map(|i| 4_u64.pow(i))
        .collect();
    let expected = MAX_FILES - 3..MAX_FILES + 1;
    check(&sized(&steep), Some((expected.clone(), Reason::Files)));
    assert_eq!(
        choose_held(&sized(&steep)),
        Choice::some(expected, Reason::Files)
    );
    assert_eq!(choose_held(&sized(&[10; MAX_FILES])), None);
    assert!(choose_held(&sized(&[10; MAX_FILES + 1])).is_some());
}

#[test]
fn deletes_go_with_what_they_delete() {
    check(&[dying(1000, 0), dying(400, 300)], None);
    check(
        &[dying(1000, 0), dying(400, 360)],
        Some((0..2, Reason::Dead)),
    );
    check(
        &[dying(1000, 0), dying(400, 400), dying(500, 0)],
        Some((0..2, Reason::Dead)),
    );
    check(&[dying(1000, 250)], Some((0..1, Reason::Dead)));
    check(&[dying(1000, 249)], None);
}

#[test]
fn what_is_past_the_age_rule_goes_from_the_oldest_on() {
    let expired = FileFacts {
        expired: true,
        ..dying(10, 10)
    };
    check(
        &[expired, expired, dying(10, 0)],
        Some((0..2, Reason::Expired)),
    );
    check(&[dying(1000, 0), expired, dying(10, 0)], None);
}

#[test]
fn what_an_age_rule_collects_is_estimated_from_the_bounds() {
    let clause = |max_versions, max_age_micros| tablemount_api::GcClause {
        max_versions,
        max_age_micros,
    };
    let age = GcRule(vec![clause(None, Some(1000))]);
    let times = (Timestamp(5000), Timestamp(6000));
    let check = |rule: &GcRule, now: i64, dead: u64, expired: bool| {
        let past = past_age(1000, times, rule, Timestamp(now));
        assert_eq!(past, (dead, expired), "at {now}");
    };
    check(&age, 6000, 0, false);
    check(&age, 6500, 500, false);
    check(&age, 7000, 1000, false);
    check(&age, 7001, 1000, true);
    // What the number of newer versions decides is not known from outside.
    check(&GcRule(vec![clause(Some(1), Some(1000))]), 9000, 0, false);
    check(&GcRule(vec![clause(Some(1), None)]), 9000, 0, false);
    check(&GcRule::default(), 9000, 0, false);
    let extremes = (Timestamp::MIN, Timestamp::MAX);
    assert_eq!(past_age(1000, extremes, &age, Timestamp(0)), (499, false));
}

fn file() -> impl Strategy<Value = FileFacts> {
    let bytes = (0_u32..20).prop_flat_map(|bits| 1_u64 << bits..2 << bits);
    (bytes, 0_u64..=100, prop::bool::weighted(0.02)).prop_map(|(bytes, percent, expired)| {
        FileFacts {
            bytes,
            entries: bytes,
            // Most files have few deletes.
            dead: bytes * percent.saturating_sub(70) / 30,
            expired,
        }
    })
}

/// Performs choices until there are none; returns the bytes written.
fn settle(
    files: &mut Vec<FileFacts>,
    choose: fn(&[FileFacts]) -> Option<Choice>,
) -> Result<u64, TestCaseError> {
    let mut written = 0;
    for _ in 0..100 {
        let Some(choice) = choose(files) else {
            return Ok(written);
        };
        prop_assert!(choice.files.end <= files.len() && !choice.files.is_empty());
        let after = performed(files, &choice);
        prop_assert_ne!(&after, &*files, "nothing changes");
        written += sum(&files[choice.files.clone()], |file| file.bytes);
        *files = after;
    }
    Err(TestCaseError::fail(format!("no end: {files:?}")))
}

proptest! {
    #[test]
    fn choices_end_with_few_files(mut files in prop::collection::vec(file(), 0..60)) {
        for choose in [choose, choose_held] {
            let mut files = files.clone();
            settle(&mut files, choose)?;
            prop_assert!(files.len() <= MAX_FILES, "{files:?}");
            prop_assert_eq!(choose(&files), None);
        }
        settle(&mut files, choose_young)?;
    }

    #[test]
    fn a_byte_is_rewritten_a_bounded_number_of_times(flushes in prop::collection::vec(file(), 1..300)) {
        let (mut files, mut written) = (Vec::new(), 0);
        for file in &flushes {
            files.push(*file);
            written += settle(&mut files, choose)?;
            prop_assert!(files.len() <= MAX_FILES);
        }
        // Into the base with what it holds of it; in tiers, of which each is at least half as large again.
        let flushed = sum(&flushes, |file| file.bytes);
        let smallest = flushes.iter().map(|file| file.bytes).min().unwrap_or(1);
        let tiers = (flushed as f64 / smallest as f64).log(1.5);
        let bound = flushed as f64 * (2.0 * SHAPE.base_parts as f64 + 2.0 + tiers);
        prop_assert!(written as f64 <= bound, "{written} of {flushed}, bound {bound}");
    }
}

#[test]
fn flushes_of_one_size_are_rewritten_few_times() {
    let (mut files, mut written, mut most) = (Vec::new(), 0, 0);
    for _ in 0..4096 {
        files.extend(sized(&[1]));
        written += settle(&mut files, choose).expect("ends");
        most = most.max(files.len());
    }
    assert!(written < 4096 * 9, "{written}");
    assert!(most < MAX_FILES, "{most}");
}
