//! Hazard 2: a bloom filter that does not know a cell's column says nothing of the deletes in its file.

use tablemount_api::{BloomFilter, DeleteRows};

use super::*;
use crate::delete_rows;
use crate::read::direct::{self, Asked};

/// How much is deleted with the cell.
#[derive(Debug, Clone, Copy)]
enum Wider {
    Column,
    Family,
    Row,
    Rows,
}

fn delete(subject: &Subject, wider: Wider) {
    let mutation = match wider {
        Wider::Column => delete_column("f", "q"),
        Wider::Family => Mutation::DeleteFamily {
            family: family("f"),
        },
        Wider::Row => Mutation::DeleteRow {},
        Wider::Rows => {
            let rows = DeleteRows {
                start: Some(row("q")),
                stop: Some(row("s")),
                ..DeleteRows::default()
            };
            let table = subject.store.table(&table()).expect("table");
            delete_rows::log(&subject.store, &table, &rows).expect("log");
            return subject.commit();
        }
    };
    subject.write("r", vec![mutation]);
}

/// What a get of the cell shows, and a read of its column, which must agree.
fn shown(subject: &Subject) -> Option<i64> {
    let table = subject.store.table(&table()).expect("table");
    let (row, family, qualifier) = (row("r"), family("f"), qualifier("q"));
    let asked = Asked::newest(&row, &family, &qualifier);
    let got = direct::get(&subject.store, &table, asked, &|length| 0..length).expect("get");
    let got = got.map(|cell| cell.timestamp.0);
    let read = subject.cells("r", "f", "q");
    assert_eq!(got, read.first().map(|(timestamp, _)| *timestamp));
    got
}

#[test]
fn hazard_02_a_wider_delete_is_not_missed_where_a_filter_lacks_the_column() {
    for wider in [Wider::Column, Wider::Family, Wider::Row, Wider::Rows] {
        for filter in [BloomFilter::None, BloomFilter::Row, BloomFilter::RowColumn] {
            // Whether the delete's file has cells, and with them a filter, over the row: then it lacks (r, q).
            for cells_beside in [false, true] {
                let what = format!("{wider:?}, {filter:?}, cells beside: {cells_beside}");
                let subject = Subject::new(vec![FamilySchema {
                    bloom_filter: filter,
                    ..versions("f", 3)
                }]);
                subject.write("r", vec![put("f", "q", 10, "v")]);
                subject.flush();
                assert_eq!(shown(&subject), Some(10), "{what}");
                delete(&subject, wider);
                if cells_beside {
                    for (key, q) in [("a", "q"), ("r", "p"), ("r", "r"), ("z", "q")] {
                        subject.write(key, vec![put("f", q, 20, "beside")]);
                    }
                }
                assert_eq!(shown(&subject), None, "{what}, in memtables");
                subject.flush();
                assert_eq!(shown(&subject), None, "{what}, in two files");
                // A newer file that has the cell neither hides nor shows what is older.
                subject.write("r", vec![put("f", "q", 5, "new")]);
                subject.flush();
                assert_eq!(shown(&subject), Some(5), "{what}, written again");
                subject.write("r", vec![delete_cell("f", "q", 5)]);
                let subject = subject.reopen();
                assert_eq!(shown(&subject), None, "{what}, reopened");
                subject.compact_fully();
                assert_eq!(shown(&subject), None, "{what}, compacted");
            }
        }
    }
}
