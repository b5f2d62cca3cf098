//! `google.longrunning.Operations`: what takes long elsewhere is done here before it is answered, so operations are done when a
//! client first sees them.

use prost::Message;
use prost_types::Any;
use tonic::{Request, Response, Status};

use super::proto::longrunning::{
    CancelOperationRequest, DeleteOperationRequest, GetOperationRequest, ListOperationsRequest,
    ListOperationsResponse, Operation, WaitOperationRequest, operation, operations_server,
};

/// An operation that is done, with its result.
pub(crate) fn done(
    name: String,
    metadata: (&str, &impl Message),
    response: (&str, &impl Message),
) -> Operation {
    let any = |(name, message): (&str, Vec<u8>)| Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: message,
    };
    Operation {
        name,
        metadata: Some(any((metadata.0, metadata.1.encode_to_vec()))),
        done: true,
        result: Some(operation::Result::Response(any((
            response.0,
            response.1.encode_to_vec(),
        )))),
    }
}

/// The service. No operation outlives its answer, so none is found later.
pub(crate) struct Operations;

fn not_found(name: &str) -> Status {
    Status::not_found(format!(
        "operation \"{name}\" not found: operations are done when they are answered, and not kept"
    ))
}

#[tonic::async_trait]
impl operations_server::Operations for Operations {
    async fn list_operations(
        &self,
        _: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        Ok(Response::new(ListOperationsResponse::default()))
    }

    async fn get_operation(
        &self,
        request: Request<GetOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        Err(not_found(&request.get_ref().name))
    }

    async fn delete_operation(
        &self,
        request: Request<DeleteOperationRequest>,
    ) -> Result<Response<()>, Status> {
        Err(not_found(&request.get_ref().name))
    }

    async fn cancel_operation(
        &self,
        request: Request<CancelOperationRequest>,
    ) -> Result<Response<()>, Status> {
        Err(not_found(&request.get_ref().name))
    }

    async fn wait_operation(
        &self,
        request: Request<WaitOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        Err(not_found(&request.get_ref().name))
    }
}
