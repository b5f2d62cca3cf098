//! A held store forgets nothing: not what a wrong rule collects, not what was dropped, over restarts too.

use std::collections::BTreeSet;

use tablemount_api::{DropTable, Hold};

use super::*;

fn hold(subject: &Subject, held: bool) -> Hold {
    let reason = held.then(|| "the rule of f was wrong".to_owned());
    let wanted = Hold {
        held,
        reason,
        since: None,
    };
    subject.store.set_hold(&wanted).expect("set hold")
}

fn five_versions(subject: &Subject) {
    for time in 1..=5 {
        subject.write("r", vec![put("f", "q", time, &format!("v{time}"))]);
        if time == 2 {
            subject.flush();
        }
    }
}

#[test]
fn a_rule_that_was_wrong_for_a_night_costs_nothing() {
    for held in [true, false] {
        let subject = Subject::new(vec![versions("f", 5)]);
        five_versions(&subject);
        if held {
            hold(&subject, true);
        }
        subject.put_table(vec![versions("f", 1)]);
        assert_eq!(subject.cells("r", "f", "q").len(), 1);
        subject.flush();
        subject.compact_fully();
        let subject = subject.reopen();
        subject.compact_fully();
        assert_eq!(subject.store.hold().held, held);
        subject.put_table(vec![versions("f", 5)]);
        let expected = if held { 5 } else { 1 };
        assert_eq!(subject.cells("r", "f", "q").len(), expected, "held: {held}");
    }
}

#[test]
fn after_the_release_rules_collect_again() {
    let subject = Subject::new(vec![versions("f", 1)]);
    hold(&subject, true);
    five_versions(&subject);
    subject.flush();
    subject.compact_fully();
    let entries = |subject: &Subject| {
        let table = subject.store.table(&table()).expect("table");
        subject.store.table_stats(&table).families[0].entries
    };
    assert_eq!(entries(&subject), 5);
    hold(&subject, false);
    subject.compact_fully();
    assert_eq!(entries(&subject), 1);
}

fn ssts(subject: &Subject) -> BTreeSet<String> {
    let paths = subject.disk.object_paths().into_iter();
    paths.filter(|path| path.contains("/sst/")).collect()
}

fn live(subject: &Subject) -> BTreeSet<String> {
    let mut live = BTreeSet::new();
    for (_, tablet) in subject.store.tablets() {
        let state = tablet.state();
        let files = state.files.values().flatten();
        live.extend(files.map(|file| file.meta.path.clone()));
    }
    live
}

#[test]
fn while_held_no_file_goes_and_at_the_release_all_that_wait_go() {
    for restart in [false, true] {
        let mut subject = Subject::new(vec![versions("f", 1), versions("g", 1)]);
        let other = TableName::new("other").expect("valid");
        let body = PutTable {
            families: vec![versions("f", 1)],
            ..PutTable::default()
        };
        subject.store.put_table(&other, &body).expect("put table");
        let request = MutateRequest {
            rows: vec![RowMutation {
                row: row("r"),
                check: None,
                mutations: vec![put("f", "q", 1, "v")],
            }],
        };
        let plan = Plan::check(&subject.store, &other, request).expect("check");
        plan.apply(&subject.store).expect("apply");
        five_versions(&subject);
        subject.write("r", vec![put("g", "q", 1, "v")]);
        subject.flush();
        hold(&subject, true);
        let before = ssts(&subject);
        subject.compact_fully();
        let drop_g = PutTable {
            families: vec![versions("f", 1)],
            drop_families: vec![family("g")],
            ..PutTable::default()
        };
        subject.store.put_table(&table(), &drop_g).expect("drop g");
        subject
            .store
            .drop_table(&other, &DropTable::default())
            .expect("drop table");
        subject.store.remove_dropped().expect("nothing");
        if restart {
            subject = subject.reopen();
            subject.store.remove_dropped().expect("nothing");
        }
        assert!(before.is_subset(&ssts(&subject)), "restart: {restart}");
        assert!(live(&subject).len() < before.len());
        hold(&subject, false);
        subject.store.remove_dropped().expect("removes");
        assert_eq!(ssts(&subject), live(&subject), "restart: {restart}");
        let folders = |path: &String| path.starts_with("tables/");
        let schemas = subject.disk.object_paths().into_iter().filter(folders);
        let uids: BTreeSet<_> = schemas
            .map(|path| path.split('/').nth(1).map(str::to_owned))
            .collect();
        assert_eq!(uids.len(), 1, "the dropped table's schema goes too");
    }
}

#[test]
fn a_merge_that_began_before_the_hold_collects_nothing() {
    let subject = Subject::new(vec![versions("f", 1)]);
    for time in 1..=4 {
        subject.write("r", vec![put("f", "q", time, "v")]);
        subject.flush();
    }
    let merge = subject.store.next_merge(None).expect("four files merge");
    hold(&subject, true);
    let before = live(&subject);
    assert_eq!(subject.store.merge(&merge).expect("merge"), None);
    assert_eq!(live(&subject), before);
    drop(merge);
    assert!(
        subject.store.next_merge(None).is_none(),
        "while held only too many files are merged"
    );
}

#[test]
fn many_files_are_merged_while_held_and_keep_all() {
    let subject = Subject::new(vec![versions("f", 1)]);
    hold(&subject, true);
    for time in 1..=20 {
        subject.write("r", vec![put("f", "q", time, "v")]);
        subject.flush();
        while let Some(merge) = subject.store.next_merge(None) {
            subject.store.merge(&merge).expect("merge").expect("done");
        }
    }
    let (table, _) = subject.store.tablets().remove(0);
    let stats = subject.store.table_stats(&table);
    assert!(stats.files <= 12, "{}", stats.files);
    subject.put_table(vec![versions("f", 50)]);
    assert_eq!(subject.cells("r", "f", "q").len(), 20);
}

#[test]
fn a_hold_tells_since_when_and_why_and_survives_a_crash() {
    let subject = Subject::new(vec![versions("f", 1)]);
    assert_eq!(subject.store.hold(), Hold::default());
    let since = subject.clock.now();
    let held = hold(&subject, true);
    assert_eq!(held.since, Some(since));
    subject.clock.advance(HOUR);
    assert_eq!(hold(&subject, true), held, "the same again changes nothing");
    let subject = subject.crash(&mut crate::storage::sim::Random::new(3));
    assert_eq!(subject.store.hold(), held);
    let released = hold(&subject, false);
    assert_eq!(released.since, Some(subject.clock.now()));
    let subject = subject.crash(&mut crate::storage::sim::Random::new(4));
    assert_eq!(subject.store.hold(), released);
    let long = Hold {
        reason: Some("x".repeat(1001)),
        ..held
    };
    let error = subject
        .store
        .set_hold(&long)
        .expect_err("refused")
        .to_string();
    assert_eq!(error, "reason of a hold is 1001 bytes; limit is 1000");
}
