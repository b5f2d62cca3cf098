//! Views: `@latest`, `@at` and the bounds, and what is generated.

use super::*;

#[tokio::test]
async fn latest_is_one_level_shorter() {
    let tree = map();
    for path in [
        "map/@latest/aaaaa/A",
        "map/aaaaa/@latest/A",
        "map/aaaaa/A/@latest",
    ] {
        assert_eq!(tree.ls(path).await, "bar foo", "{path}");
        assert_eq!(
            tree.cat(&format!("{path}/foo")).await.unwrap(),
            "y",
            "{path}"
        );
    }
    assert_eq!(tree.ls("map/@latest").await, "aaaaa aaaab xyz");
    let stat = tree.lookup("map/@latest/aaaaa/A/foo").await.unwrap().1;
    assert_eq!(
        stat,
        Stat {
            kind: Kind::File,
            size: 1,
            modified: Timestamp(15)
        }
    );
    let listed = tree
        .list(tree.lookup("map/@latest/aaaaa/A").await.unwrap().0)
        .await
        .unwrap();
    assert_eq!(listed[1].2, stat);
}

#[tokio::test]
async fn at_shows_versions_up_to_a_time() {
    let tree = map();
    assert_eq!(tree.ls("map/@at/10").await, "aaaaa aaaab xyz");
    assert_eq!(tree.ls("map/@at/1").await, "aaaaa");
    assert_eq!(tree.ls("map/@at/10/aaaaa/A").await, "foo");
    assert_eq!(
        tree.cat("map/@at/10/aaaaa/A/foo/latest").await.unwrap(),
        "mm"
    );
    assert_eq!(
        tree.cat("map/aaaaa/@at/10/A/foo/latest").await.unwrap(),
        "mm"
    );
    assert_eq!(
        tree.cat("map/aaaaa/A/@at/10/foo/latest").await.unwrap(),
        "mm"
    );
    assert_eq!(
        tree.cat("map/aaaaa/A/foo/@at/10/latest").await.unwrap(),
        "mm"
    );
    assert_eq!(
        tree.cat("map/@latest/@at/10/aaaaa/A/foo").await.unwrap(),
        "mm"
    );
    assert_eq!(
        tree.cat("map/@at/10/@latest/aaaaa/A/foo").await.unwrap(),
        "mm"
    );
    assert_eq!(tree.ls("map/aaaaa/B/%empty/@at/3").await, "latest 3 1");
    assert_eq!(
        tree.ls("map/@at/1970-01-01/aaaaa/A/foo").await,
        "latest 15 4"
    );
    assert_eq!(
        tree.ls("map/@at/1970-01-01T00:00:00.000004Z/aaaaa/A/foo")
            .await,
        "latest 4"
    );
    for absent in [
        "map/@at/2/aaaaa/A",
        "map/@at/10/aaaaa/A/foo/15",
        "map/@at/yesterday",
        "map/@at/3/@at/10/xyz",
    ] {
        assert_eq!(
            tree.errno(absent).await,
            fuser::Errno::ENOENT.code(),
            "{absent}"
        );
    }
}

#[tokio::test]
async fn bounds_of_rows_and_qualifiers() {
    let source = TestSource::new("t", &["f"]);
    for row in ["a", "aa", "ab", "b", "c/d"] {
        for qualifier in ["p", "pq", "q", "r"] {
            source.put(row, "f", qualifier, 5, "value");
        }
    }
    let tree = tree(source);
    let check = async |path: &str, names: &str| assert_eq!(tree.ls(path).await, names, "{path}");
    check("t/@prefix/a", "a aa ab").await;
    check("t/@prefix/%empty", "a aa ab b c%2Fd").await;
    check("t/@range/aa/b", "aa ab").await;
    check("t/@range/aa/%empty", "aa ab b c%2Fd").await;
    check("t/@after/aa", "ab b c%2Fd").await;
    check("t/@after/c%2Fd", "").await;
    check("t/@limit/2", "a aa").await;
    check("t/@reverse", "c%2Fd b ab aa a").await;
    check("t/@reverse/@after/b", "ab aa a").await;
    check("t/@reverse/@limit/2", "c%2Fd b").await;
    check("t/@prefix/a/@after/a/@limit/1", "aa").await;
    check("t/@at/9/@prefix/a/@latest/@limit/2", "a aa").await;
    check("t/@prefix/a/@prefix/b", "").await;
    check("t/a/f/@prefix/p", "p pq").await;
    check("t/a/f/@after/p/@limit/2", "pq q").await;
    check("t/a/f/@range/pq/r", "pq q").await;
    check("t/@prefix/a/ab/f", "p pq q r").await;
    check("t/@limit/2/@prefix", "").await;
    assert_eq!(
        tree.errno("t/@prefix/a/b").await,
        fuser::Errno::ENOENT.code()
    );
    assert_eq!(tree.errno("t/@limit/0").await, fuser::Errno::ENOENT.code());
}

#[tokio::test]
async fn tablets_are_links_to_ranges() {
    let tree = map();
    assert_eq!(tree.ls("map/@tablet").await, "1 2");
    assert_eq!(tree.link("map/@tablet/1").await, "../@range/%empty/m%2Fn");
    assert_eq!(tree.link("map/@tablet/2").await, "../@range/m%2Fn/%empty");
    assert_eq!(tree.ls("map/@range/m%2Fn/%empty").await, "xyz");
    assert_eq!(
        tree.errno("map/@tablet/3").await,
        fuser::Errno::ENOENT.code()
    );
}

#[tokio::test]
async fn generated_files_have_their_size() {
    let tree = map();
    for path in [
        "@help",
        "@config",
        "map/@help",
        "map/aaaaa/@help",
        "map/@schema.yaml",
        "map/@stats.json",
    ] {
        let (number, stat) = tree.lookup(path).await.unwrap();
        let bytes = tree.read(number).await.unwrap();
        assert_eq!(stat.size, bytes.len() as u64, "{path}");
        assert!(bytes.ends_with(b"\n"), "{path}");
    }
    assert!(
        tree.cat("map/@schema.yaml")
            .await
            .unwrap()
            .contains("- name: A\n")
    );
    assert!(
        tree.cat("@config")
            .await
            .unwrap()
            .contains("\"dirMode\": \"0555\"")
    );
}

#[tokio::test]
async fn a_row_as_json() {
    let tree = map();
    let json = tree.cat("map/aaaaa/@row.json").await.unwrap();
    let lines: Vec<&str> = json.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(
        lines[1],
        r#"{"family":"A","qualifier":"Zm9v","timestamp":15,"value":"eQ=="}"#
    );
    assert_eq!(
        tree.cat("map/aaaaa/@at/10/@row.json")
            .await
            .unwrap()
            .lines()
            .count(),
        4
    );
    let source = TestSource::new("t", &["f"]);
    for column in 0..5000 {
        source.put("r", "f", format!("{column:04}"), 5, vec![b'v'; 1000]);
    }
    source.put("long", "f", "q", 5, vec![0; 5 << 20]);
    let tree = super::tree(source);
    assert_eq!(
        tree.cat("t/r/@row.json").await.unwrap().lines().count(),
        5000
    );
    assert_eq!(
        tree.cat("t/long/@row.json")
            .await
            .unwrap_err()
            .errno()
            .code(),
        fuser::Errno::EFBIG.code()
    );
}
