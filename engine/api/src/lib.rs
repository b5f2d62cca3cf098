//! Tablemount's model, shared by the engine, its client, the operator, the filesystem and the command line.
//!
//! Owns: the data model's types and their limits ([`model`]), mutations and reads ([`mutation`], [`read`]), table schemas
//! ([`schema`]), statistics ([`stats`]), compaction on demand ([`compact`]), the hold ([`hold`]), the JSON bodies of HTTP
//! `/v1` (the serde forms of these types), error codes ([`error`]) and the reversible names that stand for byte strings in
//! paths ([`name`]).
//!
//! **Architecture invariant**: no I/O, no clock, no async. Bytes in JSON are standard base64 with padding.

pub mod compact;
pub mod error;
pub mod hold;
pub mod model;
pub mod mutation;
pub mod name;
pub mod read;
pub mod schema;
pub mod stats;
pub mod time;

mod base64_bytes;
mod delete_rows;

pub use compact::{CompactRequest, CompactResponse};
pub use delete_rows::{DeleteRows, InvalidDeleteRows};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use hold::Hold;
pub use model::{Base64, FamilyName, InvalidModel, Qualifier, RowKey, TableName, Timestamp};
pub use mutation::{
    CellCheck, MutateRequest, MutateResponse, Mutation, PutValueResponse, RowMutation, RowResult,
};
pub use read::{
    Cell, CellContent, CellPosition, PageEnd, Position, ReadLine, ReadRequest, ValueRequest,
};
pub use schema::{
    Aggregate, BloomFilter, Compression, CompressionScope, DropTable, FamilyInfo, FamilySchema,
    GcClause, GcRule, InvalidSchema, Owner, PutTable, TableInfo, TableList,
};

/// The longest JSON body of a request, in bytes: 16 MiB.
pub const MAX_JSON_BODY_BYTES: usize = 16 << 20;
