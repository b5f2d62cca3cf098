//! What has to change for a table to be as its manifest says: `plan(desired, owner, observed) -> changes`, pure.
//!
//! **Invariants**: a change that deletes data is [`ChangeClass::Destructive`] and carries the consent that it needs
//! (`loss_needs_consent`); no difference, no change (`equal_schemas_need_no_change`); an object takes over only what it owns
//! or was told to (`ownership`).

use std::fmt;

use tablemount_api::{FamilyName, FamilySchema, GcClause, GcRule, Owner, TableInfo};

use crate::condition::Reason;
use crate::crd::ChangeClass;
use crate::desired::{Desired, count_families, describe_gc};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it costs.
    pub class: ChangeClass,
    /// What changes, for a person.
    pub description: String,
    /// What must stand in `spec.allow` for it to be made.
    pub needs: Option<Permission>,
    /// Whether it stands there.
    pub allowed: bool,
}

/// A consent to the loss of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// `dropFamily`: the family may be deleted with its data.
    DropFamily(FamilyName),
    /// `tightenGC`: versions kept until now may be collected.
    TightenGc(FamilyName),
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropFamily(family) => write!(f, "dropFamily: {family}"),
            Self::TightenGc(family) => write!(f, "tightenGC: {family}"),
        }
    }
}

/// Why a table cannot become what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// The changes from `observed` (absent: no such table) to `desired` under `owner`.
pub(crate) fn plan(
    desired: &Desired,
    owner: &Owner,
    observed: Option<&TableInfo>,
) -> Result<Vec<Change>, Refusal> {
    let Some(observed) = observed else {
        let families = count_families(desired.families.len());
        return Ok(vec![free(
            ChangeClass::Online,
            format!("make table \"{}\" with {families}", desired.name),
        )]);
    };
    let mut changes = Vec::from_iter(take_over(desired, owner, observed)?);
    keep_splits(desired, observed)?;
    for wanted in &desired.families {
        match observed
            .families
            .iter()
            .find(|family| family.schema.name == wanted.name)
        {
            None => changes.push(free(
                ChangeClass::Online,
                format!("add column family \"{}\"", wanted.name),
            )),
            Some(existing) => change_family(desired, &existing.schema, wanted, &mut changes),
        }
    }
    changes.extend(dropped_families(desired, observed));
    Ok(changes)
}

/// The families that exist and are not wanted.
pub(crate) fn unwanted_families<'a>(
    desired: &'a Desired,
    observed: &'a TableInfo,
) -> impl Iterator<Item = &'a FamilyName> {
    let wanted = |name: &FamilyName| desired.families.iter().any(|family| family.name == *name);
    observed
        .families
        .iter()
        .map(|family| &family.schema.name)
        .filter(move |name| !wanted(name))
}

/// The consents of the manifest that no change needs.
pub(crate) fn unused_permissions(desired: &Desired, changes: &[Change]) -> Vec<Permission> {
    let drops = desired.may_drop.iter().cloned().map(Permission::DropFamily);
    let tightenings = desired
        .may_tighten
        .iter()
        .cloned()
        .map(Permission::TightenGc);
    let needed = |permission: &Permission| {
        changes
            .iter()
            .any(|change| change.needs.as_ref() == Some(permission))
    };
    drops
        .chain(tightenings)
        .filter(|permission| !needed(permission))
        .collect()
}

fn free(class: ChangeClass, description: String) -> Change {
    Change {
        class,
        description,
        needs: None,
        allowed: true,
    }
}

fn take_over(
    desired: &Desired,
    owner: &Owner,
    observed: &TableInfo,
) -> Result<Option<Change>, Refusal> {
    let name = &observed.name;
    match &observed.owner {
        Some(current) if current == owner => Ok(None),
        Some(current) if is_same_object(current, owner) => Ok(Some(free(
            ChangeClass::Online,
            format!("take up table \"{name}\" again, made by an earlier object of this name"),
        ))),
        _ if desired.adopt_existing => Ok(Some(free(
            ChangeClass::Online,
            format!("adopt table \"{name}\""),
        ))),
        Some(current) => Err(Refusal {
            reason: Reason::OwnedByOther,
            message: format!(
                "table \"{name}\" belongs to {}; choose another spec.tableName, or take it over with spec.adoptExisting: true",
                describe_owner(current, owner)
            ),
        }),
        None => Err(Refusal {
            reason: Reason::NotAdopted,
            message: format!(
                "table \"{name}\" exists already and was not made by a Table; take it over with spec.adoptExisting: true, or choose another spec.tableName"
            ),
        }),
    }
}

/// Whether the marker was set by an object in the same place, perhaps an earlier one (deleted and applied again, restored).
fn is_same_object(marker: &Owner, owner: &Owner) -> bool {
    (&marker.cluster, &marker.namespace, &marker.name)
        == (&owner.cluster, &owner.namespace, &owner.name)
}

fn describe_owner(marker: &Owner, owner: &Owner) -> String {
    let object = format!(
        "Table \"{}\" in namespace \"{}\"",
        marker.name, marker.namespace
    );
    match marker.cluster == owner.cluster {
        true => object,
        false => format!("{object} of another cluster ({})", marker.cluster),
    }
}

fn keep_splits(desired: &Desired, observed: &TableInfo) -> Result<(), Refusal> {
    let missing: Vec<_> = desired
        .splits
        .iter()
        .filter(|key| !observed.splits.contains(key))
        .map(|key| tablemount_api::name::encode(key.bytes()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal {
        reason: Reason::SplitsImmutable,
        message: format!(
            "table \"{}\" exists and is not split at {}: splits cannot be added to a table that exists; take them out of spec.splits",
            observed.name,
            shortened(&missing)
        ),
    })
}

fn shortened(names: &[String]) -> String {
    match names {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        _ => names.join(", "),
    }
}

fn change_family(
    desired: &Desired,
    existing: &FamilySchema,
    wanted: &FamilySchema,
    changes: &mut Vec<Change>,
) {
    let name = &wanted.name;
    for ((class, what, from), (.., to)) in settings(existing).into_iter().zip(settings(wanted)) {
        if from != to {
            let description = format!("column family \"{name}\": {what} {from} becomes {to}");
            changes.push(free(class, description));
        }
    }
    changes.extend(change_gc(desired, existing, wanted));
}

/// The settings of a family besides its GC rule: what a change of it costs, its field in the manifest, its value.
fn settings(schema: &FamilySchema) -> [(ChangeClass, &'static str, String); 7] {
    use ChangeClass::{Online, Rewrite};
    [
        (Online, "inMemory", schema.in_memory.to_string()),
        (Online, "maxValueBytes", schema.max_value_bytes.to_string()),
        (Rewrite, "compression", format!("{:?}", schema.compression)),
        (
            Online,
            "compression.scope",
            format!("{:?}", schema.compression_scope),
        ),
        (Rewrite, "blockSizeBytes", schema.block_bytes.to_string()),
        (Online, "bloomFilter", format!("{:?}", schema.bloom_filter)),
        (Online, "blockCache", schema.block_cache.to_string()),
    ]
}

fn change_gc(desired: &Desired, existing: &FamilySchema, wanted: &FamilySchema) -> Option<Change> {
    let name = &wanted.name;
    if existing.gc_rule == wanted.gc_rule {
        return None;
    }
    let (from, to) = (describe_gc(&existing.gc_rule), describe_gc(&wanted.gc_rule));
    let description = format!("column family \"{name}\" {to}; until now it {from}");
    if !is_tighter(&existing.gc_rule, &wanted.gc_rule) {
        return Some(free(ChangeClass::Online, description));
    }
    Some(Change {
        class: ChangeClass::Destructive,
        description,
        needs: Some(Permission::TightenGc(name.clone())),
        allowed: desired.may_tighten.contains(name),
    })
}

fn dropped_families(desired: &Desired, observed: &TableInfo) -> Vec<Change> {
    let dropped = |name: &FamilyName| Change {
        class: ChangeClass::Destructive,
        description: format!("drop column family \"{name}\" and its data"),
        needs: Some(Permission::DropFamily(name.clone())),
        allowed: desired.may_drop.contains(name),
    };
    unwanted_families(desired, observed).map(dropped).collect()
}

/// Whether the new rule may collect a version that the old one keeps: some clause of it is implied by no clause of the old.
fn is_tighter(old: &GcRule, new: &GcRule) -> bool {
    new.0
        .iter()
        .any(|clause| !old.0.iter().any(|old| implies(clause, old)))
}

/// Whether whatever `clause` collects, `by` collects too.
fn implies(clause: &GcClause, by: &GcClause) -> bool {
    by.max_versions
        .is_none_or(|limit| clause.max_versions.is_some_and(|n| n >= limit))
        && by
            .max_age_micros
            .is_none_or(|limit| clause.max_age_micros.is_some_and(|age| age >= limit))
}

#[cfg(test)]
mod tests;
