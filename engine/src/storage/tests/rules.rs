//! GC rules, limits and bookkeeping of the store beyond the hazards.

use tablemount_api::{GcClause, MutateRequest, RowMutation};

use super::*;

#[test]
fn versions_and_age_are_a_union_of_intersections() {
    let rule = vec![
        GcClause {
            max_versions: Some(3),
            max_age_micros: None,
        },
        GcClause {
            max_versions: Some(1),
            max_age_micros: Some(HOUR),
        },
    ];
    let subject = Subject::new(vec![FamilySchema {
        gc_rule: GcRule(rule),
        ..FamilySchema::new(family("f"))
    }]);
    for text in ["a", "b", "c", "d"] {
        subject.write("r", vec![put_now("f", "q", text)]);
        subject.clock.advance(SECOND);
    }
    let texts = |subject: &Subject| {
        subject
            .cells("r", "f", "q")
            .into_iter()
            .map(|cell| cell.1)
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&subject), ["d", "c", "b"]);
    subject.clock.set(1_700_000_000 * SECOND + 5 * HOUR);
    assert_eq!(texts(&subject), ["d"], "one version stays, however old");
    subject.flush();
    subject.compact_fully();
    assert_eq!(texts(&subject), ["d"]);
}

#[test]
fn a_looser_rule_shows_collected_versions_but_nothing_that_was_overwritten() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("r", vec![put("f", "q", 10, "overwritten")]);
    subject.write("r", vec![put("f", "gone", 10, "deleted")]);
    subject.flush();
    subject.write(
        "r",
        vec![put("f", "q", 10, "collected"), put("f", "q", 20, "newest")],
    );
    subject.write(
        "r",
        vec![delete_cell("f", "gone", 10), put("f", "gone", 20, "newest")],
    );
    subject.flush();
    subject.put_table(vec![versions("f", 9)]);
    assert_eq!(subject.cells("r", "f", "q"), [(20, "newest".to_owned())]);
    assert_eq!(subject.cells("r", "f", "gone"), [(20, "newest".to_owned())]);
}

#[test]
fn a_mutation_that_grows_over_what_a_group_takes_is_refused() {
    let subject = Subject::new((0..100).map(|i| versions(&format!("f{i}"), 1)).collect());
    let rows = vec![Mutation::DeleteRow {}; 100_000];
    let error = subject.log("r", rows).expect_err("refused").to_string();
    assert_eq!(
        error,
        "row \"r\": mutations of 640000001 bytes; limit is 134217728"
    );
    let half = Mutation::Put {
        family: family("f0"),
        qualifier: qualifier("q"),
        timestamp: None,
        value: Base64(vec![b'v'; 50 << 20].into()),
    };
    subject.write("r", vec![half]);
    let append = Mutation::Append {
        family: family("f0"),
        qualifier: qualifier("q"),
        value: value("x"),
    };
    let error = subject
        .log("r", vec![append; 3])
        .expect_err("refused")
        .to_string();
    assert!(
        error.ends_with("the mutations come to 157286508 bytes; limit is 134217728"),
        "{error}"
    );
    assert_eq!(subject.reopen().cells("r", "f0", "q").len(), 1);
}

#[test]
fn a_dropped_table_pins_no_segment() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let other = TableName::new("other").expect("valid");
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    subject.store.put_table(&other, &body).expect("put table");
    for _ in 0..20 {
        subject.write("r", vec![put("f", "q", 1, &"v".repeat(3000))]);
    }
    subject
        .log("r", vec![put("f", "q", 1, "not yet committed")])
        .expect("log");
    let log = subject.store.log().expect("log");
    assert_eq!(log.oldest_holders().len(), 1);
    subject
        .store
        .drop_table(&table(), &tablemount_api::DropTable::default())
        .expect("drop");
    assert!(log.oldest_holders().is_empty());
    assert!(
        log.bytes() <= 2 * options().segment_bytes,
        "{}",
        log.bytes()
    );
    assert_eq!(subject.store.stats().memtable_bytes, 0);
}

#[test]
fn rows_before_one_that_fails_are_written_and_counted() {
    let subject = Subject::new(vec![versions("f", 1)]);
    subject.write("b", vec![put("f", "q", 1, "text")]);
    let mutation = |key: &str| RowMutation {
        row: row(key),
        check: None,
        mutations: vec![increment("f", "q", 1)],
    };
    let rows = vec![mutation("a"), mutation("b"), mutation("c")];
    let error = subject
        .log_all(MutateRequest { rows })
        .expect_err("refused")
        .to_string();
    assert_eq!(
        error,
        "table \"t\", row \"b\" (1 of 3 rows were written before it): column f:q: increment of a value of 4 bytes; it takes 8"
    );
    subject.commit();
    assert_eq!(subject.cells("a", "f", "q").len(), 1);
    assert_eq!(subject.cells("c", "f", "q").len(), 0);
}
