//! GC rules of the API, a tree, as ours, a union of intersections, and back.

use prost_types::Duration;
use tablemount_api::{GcClause, GcRule};

use super::proto::admin;
use super::proto::admin::gc_rule::{Intersection, Rule, Union};
use crate::{Error, Result};

/// Rules inside each other.
const MAX_DEPTH: usize = 10;
/// Clauses that a rule may come to.
const MAX_CLAUSES: usize = 20;

/// The engine's rule; absent or empty: nothing is collected.
pub(crate) fn from_proto(rule: Option<&admin::GcRule>) -> Result<GcRule> {
    match rule.and_then(|rule| rule.rule.as_ref()) {
        None => Ok(GcRule::default()),
        Some(rule) => Ok(GcRule(clauses(rule, 0)?)),
    }
}

/// A union of clauses in each of which all conditions hold.
fn clauses(rule: &Rule, depth: usize) -> Result<Vec<GcClause>> {
    let invalid = |what: String| Error::Invalid(format!("gc_rule: {what}"));
    if depth > MAX_DEPTH {
        return Err(invalid(format!("rules nested deeper than {MAX_DEPTH}")));
    }
    let each = |rules: &[admin::GcRule]| {
        let inside = |rule: &admin::GcRule| match &rule.rule {
            Some(rule) => clauses(rule, depth + 1),
            None => Err(invalid("an empty rule inside another".to_owned())),
        };
        match rules.is_empty() {
            true => Err(invalid("a union or intersection of no rules".to_owned())),
            false => rules.iter().map(inside).collect::<Result<Vec<_>>>(),
        }
    };
    let all: Vec<GcClause> = match rule {
        Rule::MaxNumVersions(count) => {
            let versions = u32::try_from(*count).ok().filter(|count| *count > 0);
            let max_versions = versions.ok_or_else(|| {
                invalid(format!("max_num_versions is {count}; it must be 1 or more"))
            })?;
            vec![GcClause {
                max_versions: Some(max_versions),
                max_age_micros: None,
            }]
        }
        Rule::MaxAge(age) => {
            let micros = age
                .seconds
                .checked_mul(1_000_000)
                .and_then(|micros| micros.checked_add(i64::from(age.nanos) / 1000));
            let micros = micros.filter(|micros| *micros >= 1000).ok_or_else(|| {
                invalid(format!(
                    "max_age is {} s and {} ns; it must be 1 ms or more",
                    age.seconds, age.nanos
                ))
            })?;
            vec![GcClause {
                max_versions: None,
                max_age_micros: Some(micros),
            }]
        }
        Rule::Union(Union { rules }) => each(rules)?.into_iter().flatten().collect(),
        Rule::Intersection(Intersection { rules }) => {
            let mut all = vec![GcClause {
                max_versions: None,
                max_age_micros: None,
            }];
            for alternatives in each(rules)? {
                all = all
                    .iter()
                    .flat_map(|one| alternatives.iter().map(|other| both(*one, *other)))
                    .collect();
                if all.len() > MAX_CLAUSES {
                    break;
                }
            }
            all
        }
    };
    match all.len() {
        count if count > MAX_CLAUSES => Err(invalid(format!(
            "it comes to {count} alternatives; limit is {MAX_CLAUSES}"
        ))),
        _ => Ok(all),
    }
}

/// Where both clauses hold.
fn both(one: GcClause, other: GcClause) -> GcClause {
    GcClause {
        max_versions: one.max_versions.max(other.max_versions),
        max_age_micros: one.max_age_micros.max(other.max_age_micros),
    }
}

/// The API's rule; `None`: nothing is collected.
pub(crate) fn to_proto(rule: &GcRule) -> Option<admin::GcRule> {
    let mut all: Vec<admin::GcRule> = rule.0.iter().map(clause).collect();
    match all.len() {
        0 => None,
        1 => all.pop(),
        _ => Some(one(Rule::Union(Union { rules: all }))),
    }
}

fn clause(clause: &GcClause) -> admin::GcRule {
    let versions = clause.max_versions.map(|count| {
        one(Rule::MaxNumVersions(
            i32::try_from(count).unwrap_or(i32::MAX),
        ))
    });
    let age = clause.max_age_micros.map(|micros| {
        one(Rule::MaxAge(Duration {
            seconds: micros / 1_000_000,
            nanos: (micros % 1_000_000 * 1000) as i32,
        }))
    });
    let mut rules: Vec<_> = versions.into_iter().chain(age).collect();
    match rules.len() {
        1 => rules.remove(0),
        _ => one(Rule::Intersection(Intersection { rules })),
    }
}

fn one(rule: Rule) -> admin::GcRule {
    admin::GcRule { rule: Some(rule) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(count: i32) -> admin::GcRule {
        one(Rule::MaxNumVersions(count))
    }

    fn age(seconds: i64) -> admin::GcRule {
        one(Rule::MaxAge(Duration { seconds, nanos: 0 }))
    }

    fn union(rules: Vec<admin::GcRule>) -> admin::GcRule {
        one(Rule::Union(Union { rules }))
    }

    fn intersection(rules: Vec<admin::GcRule>) -> admin::GcRule {
        one(Rule::Intersection(Intersection { rules }))
    }

    #[test]
    fn rules_come_back_as_they_were() {
        for rule in [
            versions(3),
            age(60),
            union(vec![versions(3), age(60)]),
            intersection(vec![versions(1), age(5)]),
            union(vec![intersection(vec![versions(1), age(5)]), versions(9)]),
        ] {
            let ours = from_proto(Some(&rule)).expect("valid");
            assert_eq!(to_proto(&ours), Some(rule));
        }
        assert_eq!(to_proto(&GcRule::default()), None);
    }

    #[test]
    fn an_intersection_of_unions_is_a_union_of_intersections() {
        let rule = intersection(vec![union(vec![versions(3), age(60)]), versions(5)]);
        let expected = union(vec![versions(5), intersection(vec![versions(5), age(60)])]);
        let ours = from_proto(Some(&rule)).expect("valid");
        assert_eq!(to_proto(&ours), Some(expected));
    }

    #[test]
    fn bad_rules_are_refused() {
        let check = |rule: admin::GcRule, expected: &str| {
            let error = from_proto(Some(&rule)).expect_err("refused").to_string();
            assert_eq!(error, expected);
        };
        check(
            versions(0),
            "gc_rule: max_num_versions is 0; it must be 1 or more",
        );
        check(
            age(0),
            "gc_rule: max_age is 0 s and 0 ns; it must be 1 ms or more",
        );
        check(
            union(vec![]),
            "gc_rule: a union or intersection of no rules",
        );
        let pair = || union(vec![versions(1), age(1)]);
        let many = intersection((0..9).map(|_| pair()).collect());
        check(many, "gc_rule: it comes to 32 alternatives; limit is 20");
    }
}
