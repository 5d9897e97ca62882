//! Serves every RPC of a FileDescriptorSet by tonic, and prints its port: `plantstore-test-echo definitions.binpb`.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, Value};
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt, wrappers::TcpListenerStream};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Request, Response, Status, body::Body, service::Routes, transport::Server};

type Answers = Pin<Box<dyn Stream<Item = Result<DynamicMessage, Status>> + Send>>;

/// Answers the calls of one RPC. Unary ones are streams of one message on the wire.
struct Echo(MethodDescriptor);

impl StreamingService<DynamicMessage> for Echo {
    type Response = DynamicMessage;
    type ResponseStream = Answers;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<DynamicMessage>>) -> Self::Future {
        let method = self.0.clone();
        Box::pin(async move {
            let mut requests = request.into_inner();
            if method.is_client_streaming() && method.is_server_streaming() {
                return Ok(Response::new(Box::pin(requests) as Answers));
            }
            let mut all = Vec::new();
            while let Some(request) = requests.next().await {
                all.push(request?);
            }
            let answers = answer(&method, all)?;
            Ok(Response::new(
                Box::pin(tokio_stream::iter(answers)) as Answers
            ))
        })
    }
}

/// Answers as conformance/README.md and the kitchen sink say.
fn answer(
    method: &MethodDescriptor,
    mut requests: Vec<DynamicMessage>,
) -> Result<Vec<Result<DynamicMessage, Status>>, Status> {
    let output = method.output();
    let mut answer = DynamicMessage::new(output.clone());
    if method.is_client_streaming() {
        let items = requests.into_iter().map(Value::Message).collect();
        answer.set_field_by_number(1, Value::List(items));
        return Ok(vec![Ok(answer)]);
    }
    let request = requests
        .pop()
        .ok_or(Status::internal("there is no message"))?;
    match method.name() {
        "Fail" => {
            let field = if method.input().get_field_by_name("code").is_some() {
                "code"
            } else {
                "f_int32"
            };
            return Err(Status::new(
                Code::from_i32(number(&request, field)),
                "as asked",
            ));
        }
        "Count" => return Ok(count(&output, &request)),
        "GetFile" => answer = body_of(output, &request, bytes(&request)),
        "GetFileField" => {
            let body = method
                .parent_pool()
                .get_message_by_name("google.api.HttpBody")
                .expect("is imported");
            answer.set_field_by_name(
                "file",
                Value::Message(body_of(body, &request, bytes(&request))),
            );
        }
        "GetPieces" => {
            let piece = |byte: &u8| Ok(body_of(output.clone(), &request, [*byte]));
            return Ok(bytes(&request).iter().map(piece).collect());
        }
        _ if output == method.input() => answer = request,
        rpc if output.name() == "Echo" => {
            answer.set_field_by_name("rpc", Value::String(rpc.to_owned()));
            let message = match output.get_field_by_name("sink") {
                Some(_) => Value::Message(request),
                None => Value::String(
                    serde_json::to_string(&request)
                        .map_err(|error| Status::internal(error.to_string()))?,
                ),
            };
            answer.set_field_by_number(2, message);
        }
        _ => {}
    }
    Ok(vec![Ok(answer)])
}

fn count(
    output: &MessageDescriptor,
    request: &DynamicMessage,
) -> Vec<Result<DynamicMessage, Status>> {
    let item = |index| {
        let mut item = DynamicMessage::new(output.clone());
        item.set_field_by_name("index", Value::I32(index));
        item.set_field_by_name("text", Value::String("item".to_owned()));
        item
    };
    let items = (1..=number(request, "count")).map(|index| Ok(item(index)));
    match number(request, "fail_with") {
        0 => items.collect(),
        code => items
            .chain([Err(Status::new(Code::from_i32(code), "as asked"))])
            .collect(),
    }
}

fn number(message: &DynamicMessage, name: &str) -> i32 {
    message
        .get_field_by_name(name)
        .and_then(|value| value.as_i32())
        .expect("is an int32")
}

fn bytes(message: &DynamicMessage) -> Vec<u8> {
    let value = message.get_field_by_name("data").expect("has data");
    value.as_bytes().expect("is bytes").to_vec()
}

fn body_of(
    descriptor: MessageDescriptor,
    request: &DynamicMessage,
    data: impl Into<Vec<u8>>,
) -> DynamicMessage {
    let mut body = DynamicMessage::new(descriptor);
    let content_type = request
        .get_field_by_name("content_type")
        .expect("has a type");
    body.set_field_by_name("content_type", content_type.into_owned());
    body.set_field_by_name("data", Value::Bytes(data.into().into()));
    body
}

/// Messages of types that are known when it runs.
struct Messages(MethodDescriptor);
struct Inputs(MessageDescriptor);
struct Outputs;

impl Codec for Messages {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Outputs;
    type Decoder = Inputs;

    fn encoder(&mut self) -> Outputs {
        Outputs
    }

    fn decoder(&mut self) -> Inputs {
        Inputs(self.0.input())
    }
}

impl Encoder for Outputs {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, bytes: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message
            .encode(bytes)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Inputs {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), bytes);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

async fn serve(
    pool: DescriptorPool,
    request: http::Request<Body>,
) -> Result<http::Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let found = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut named = found.filter(|method| {
        path == format!("/{}/{}", method.parent_service().full_name(), method.name())
    });
    Ok(match named.next() {
        Some(method) => {
            Grpc::new(Messages(method.clone()))
                .streaming(Echo(method), request)
                .await
        }
        None => Status::unimplemented(path).into_http(),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which definitions?")?;
    let pool = DescriptorPool::decode(&*std::fs::read(file)?)?;
    let handler = tower::service_fn(move |request: http::Request<axum::body::Body>| {
        serve(pool.clone(), request.map(Body::new))
    });
    let routes = Routes::from(axum::Router::new().fallback_service(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    Server::builder()
        .add_routes(routes)
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await?;
    Ok(())
}
