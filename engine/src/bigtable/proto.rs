//! The generated types and services of `engine/proto`.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::unwrap_used,
    rustdoc::all,
    reason = "generated"
)]

pub(crate) mod google {
    pub(crate) mod api {
        tonic::include_proto!("google.api");
    }
    pub(crate) mod bigtable {
        pub(crate) mod v2 {
            tonic::include_proto!("google.bigtable.v2");
        }
        pub(crate) mod admin {
            pub(crate) mod v2 {
                tonic::include_proto!("google.bigtable.admin.v2");
            }
        }
    }
    pub(crate) mod iam {
        pub(crate) mod v1 {
            tonic::include_proto!("google.iam.v1");
        }
    }
    pub(crate) mod longrunning {
        tonic::include_proto!("google.longrunning");
    }
    pub(crate) mod rpc {
        tonic::include_proto!("google.rpc");
    }
    pub(crate) mod r#type {
        tonic::include_proto!("google.r#type");
    }
}

pub(crate) use google::bigtable::admin::v2 as admin;
pub(crate) use google::bigtable::v2;
pub(crate) use google::{longrunning, rpc};

/// Descriptors of all of them.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
