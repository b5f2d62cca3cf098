//! Tests of CSV sources.

use super::super::families::tests::families;
use super::*;

fn options() -> CsvOptions {
    CsvOptions {
        row: None,
        family: None,
        timestamp: None,
        time_format: TimeFormat::Any,
        columns: Vec::new(),
        skip: Vec::new(),
    }
}

fn lines(text: &str, options: CsvOptions) -> Vec<String> {
    let mut source = CsvSource::new(text.as_bytes(), families(), options).expect("header");
    let lines = std::iter::from_fn(|| source.next().expect("readable"));
    lines
        .map(|line| match line {
            Line::Bad { number, reason } => format!("{number} bad: {reason}"),
            Line::Row { number, row } => {
                let cells: Vec<_> = row.mutations.iter().map(show).collect();
                format!(
                    "{number} {} {}",
                    String::from_utf8_lossy(row.row.bytes()),
                    cells.join(" ")
                )
            }
        })
        .collect()
}

fn show(mutation: &Mutation) -> String {
    let Mutation::Put {
        family,
        qualifier,
        timestamp: Some(timestamp),
        value,
    } = mutation
    else {
        panic!("{mutation:?}")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{family}:{}@{timestamp}={}",
        text(qualifier.bytes()),
        text(&value.0)
    )
}

#[test]
fn columns_by_their_names() {
    let text = "id,info:a,text:\nr1,x,\nr2,,\"two\nlines\"\nr3,,\nr4\n,x,y\nr5,12345678901,\n";
    assert_eq!(
        lines(text, options()),
        [
            "2 r1 info:a@7=x",
            "3 r2 text:@7=two\nlines",
            "5 bad: the row has no cells: all its fields are empty",
            "6 bad: 1 fields; the header has 3",
            "7 bad: row key is empty; a row key has 1 to 65536 bytes",
            "8 bad: value is 11 bytes; limit of column family \"info\" is 10",
        ]
    );
}

#[test]
fn columns_by_the_command_line() {
    let text = "note,date,symbol,price\nn,Jan 2 1970,MSFT,39.8\nn,never,MSFT,1\n";
    let options = CsvOptions {
        row: Some("symbol".to_owned()),
        timestamp: Some("date".to_owned()),
        time_format: TimeFormat::Pattern("%b %d %Y".to_owned()),
        columns: vec![("price".to_owned(), "text:close".parse().expect("column"))],
        skip: vec!["note".to_owned()],
        ..options()
    };
    assert_eq!(
        lines(text, options),
        [
            "2 MSFT text:close@86400000000=39.8",
            "3 bad: timestamp \"never\" is not of the form \"%b %d %Y\", or lies before 1970"
        ]
    );
}

#[test]
fn a_family_for_all_columns() {
    let options = CsvOptions {
        family: Some("info".to_owned()),
        ..options()
    };
    assert_eq!(
        lines("k,a,b:c\nr,1,2\n", options),
        ["2 r info:a@7=1 info:b:c@7=2"]
    );
}

#[test]
fn one_cell_a_line() {
    let text = "row,family,qualifier,timestamp,value\nr,text,,15,\nr,none,q,1,v\n";
    assert_eq!(
        lines(text, options()),
        [
            "2 r text:@15=",
            "3 bad: column family \"none\" not found in table \"t\" (families: \"info\", \"text\")"
        ]
    );
}

#[test]
fn headers_that_cannot_be_placed_are_refused() {
    let check = |text: &str, options: CsvOptions, expected: &str| {
        let error = CsvSource::new(text.as_bytes(), families(), options)
            .err()
            .expect("refused");
        assert_eq!(error.to_string(), expected);
    };
    check(
        "",
        options(),
        "the file is empty; its first line must name the columns",
    );
    check(
        "k,a,a\n",
        options(),
        "column \"a\" stands twice, the second time as column 3",
    );
    check(
        "k,a\n",
        options(),
        "column \"a\" is not FAMILY:QUALIFIER; give --family for such columns, --column a=FAMILY:QUALIFIER or --skip a",
    );
    check(
        "k,Info:a\n",
        options(),
        "column family \"Info\" not found in table \"t\" (families: \"info\", \"text\")",
    );
    let row = |name: &str| CsvOptions {
        row: Some(name.to_owned()),
        ..options()
    };
    check(
        "k,info:a\n",
        row("key"),
        "column \"key\" not found (columns: \"k\", \"info:a\")",
    );
    check(
        "k\n",
        options(),
        "no column is left for cells (columns: \"k\")",
    );
}

#[test]
fn an_open_quote_does_not_take_the_whole_file() {
    struct Endless;
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let input = b"k,info:a\nr,\"".chain(Endless);
    let mut source = CsvSource::new(input, families(), options()).expect("header");
    let error = source.next().expect_err("bounded");
    assert_eq!(
        format!("{error:#}"),
        "record from line 2 on: over 220200960 bytes; is a quote not closed?"
    );
}
