//! The HTTP and gRPC edges, each test against a server and a store of its own.

mod cells;
mod docs;
mod limits;
mod reads;
mod refusals;
mod rows;
mod servers;
mod stats;
mod support;
mod upkeep;
