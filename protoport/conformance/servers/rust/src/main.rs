//! `transcoding-echo PORT` serves the echo contract with tonic, behind a transcoder. It runs in a folder with
//! `echo.binpb`, the contract's descriptor set with all imports. It prints its port; for 0, it uses a free one.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage,
    Value,
};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::server::{Grpc, StreamingService};
use tonic::transport::{Server, server::TcpIncoming};
use tonic::{Code, Request, Response, Status, Streaming};

type Answer = Result<DynamicMessage, Status>;
type Answers = Pin<Box<dyn Stream<Item = Answer> + Send>>;

/// Reads, serves and writes one RPC. On the wire an RPC without streams is one with a message in each.
#[derive(Clone)]
struct Rpc(MethodDescriptor);

impl StreamingService<DynamicMessage> for Rpc {
    type Response = DynamicMessage;
    type ResponseStream = Answers;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<DynamicMessage>>) -> Self::Future {
        let rpc = self.0.clone();
        Box::pin(async move { Ok(Response::new(answer(rpc, request.into_inner()).await?)) })
    }
}

async fn answer(
    rpc: MethodDescriptor,
    mut messages: Streaming<DynamicMessage>,
) -> Result<Answers, Status> {
    if rpc.is_client_streaming() && rpc.is_server_streaming() {
        return Ok(Box::pin(messages));
    }
    if rpc.is_client_streaming() {
        let mut items = Vec::new();
        while let Some(item) = messages.message().await? {
            items.push(Value::Message(item));
        }
        let items = made(rpc.output(), [("items", Value::List(items))]);
        return Ok(send(vec![Ok(items)]));
    }
    let request = messages
        .message()
        .await?
        .ok_or_else(|| Status::internal("no message"))?;
    Ok(send(match rpc.name() {
        "Fail" => vec![Err(failure(first_number(&request)))],
        "GetFile" => vec![Ok(body_of(rpc.output(), &request, field(&request, "data")))],
        "GetFileField" => {
            let Some(body) = rpc
                .output()
                .get_field_by_name("file")
                .and_then(|file| file.kind().as_message().cloned())
            else {
                return Err(Status::internal("the contract has no such field"));
            };
            let body = body_of(body, &request, field(&request, "data"));
            vec![Ok(made(rpc.output(), [("file", Value::Message(body))]))]
        }
        "GetPieces" => {
            let data = field(&request, "data")
                .as_bytes()
                .cloned()
                .unwrap_or_default();
            let pieces = data
                .chunks(1)
                .map(|piece| Value::Bytes(data.slice_ref(piece)));
            pieces
                .map(|piece| Ok(body_of(rpc.output(), &request, piece)))
                .collect()
        }
        "Count" => {
            let item = |index| {
                made(
                    rpc.output(),
                    [
                        ("index", Value::I32(index)),
                        ("text", Value::String("item".into())),
                    ],
                )
            };
            let mut items: Vec<Answer> = (1..=number(&request, "count"))
                .map(|index| Ok(item(index)))
                .collect();
            if number(&request, "fail_with") != 0 {
                items.push(Err(failure(number(&request, "fail_with"))));
            }
            items
        }
        _ if rpc.output() == rpc.input() => vec![Ok(request)],
        name => match rpc.output().get_field(2).map(|field| field.kind()) {
            None => vec![Ok(DynamicMessage::new(rpc.output()))],
            Some(kind) => {
                let mut echo = made(rpc.output(), [("rpc", Value::String(name.into()))]);
                let kept = match kind {
                    Kind::Message(_) => Value::Message(request),
                    _ => Value::String(
                        serde_json::to_string(&request)
                            .map_err(|error| Status::internal(error.to_string()))?,
                    ),
                };
                echo.set_field_by_number(2, kept);
                vec![Ok(echo)]
            }
        },
    }))
}

fn send(answers: Vec<Answer>) -> Answers {
    Box::pin(tokio_stream::iter(answers))
}

fn failure(code: i32) -> Status {
    Status::new(Code::from(code), "as asked")
}

fn made<const N: usize>(
    descriptor: MessageDescriptor,
    fields: [(&str, Value); N],
) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor);
    for (name, value) in fields {
        message.set_field_by_name(name, value);
    }
    message
}

fn body_of(descriptor: MessageDescriptor, request: &DynamicMessage, data: Value) -> DynamicMessage {
    made(
        descriptor,
        [
            ("content_type", field(request, "content_type")),
            ("data", data),
        ],
    )
}

fn field(message: &DynamicMessage, name: &str) -> Value {
    message
        .get_field_by_name(name)
        .map_or(Value::I32(0), |value| value.into_owned())
}

fn number(message: &DynamicMessage, name: &str) -> i32 {
    field(message, name).as_i32().unwrap_or_default()
}

fn first_number(message: &DynamicMessage) -> i32 {
    let descriptor = message.descriptor();
    let mut fields = descriptor.fields();
    let first = fields.find(|field| field.kind() == Kind::Int32);
    first.map_or(0, |field| number(message, field.name()))
}

impl Codec for Rpc {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }
    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for Rpc {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(
        &mut self,
        message: DynamicMessage,
        buffer: &mut EncodeBuf<'_>,
    ) -> Result<(), Status> {
        message
            .encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Rpc {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.input(), buffer);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

fn find(contract: &DescriptorPool, path: &str) -> Option<MethodDescriptor> {
    let (service, name) = path.strip_prefix('/')?.split_once('/')?;
    contract
        .get_service_by_name(service)?
        .methods()
        .find(|rpc| rpc.name() == name)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let contract = DescriptorPool::decode(std::fs::read("echo.binpb")?.as_slice())?;
    let port = std::env::args().nth(1).ok_or("give a port")?;
    let serve = tower::service_fn(move |request: http::Request<Body>| {
        let rpc = find(&contract, request.uri().path());
        async move {
            Ok::<_, Infallible>(match rpc {
                Some(rpc) => {
                    Grpc::new(Rpc(rpc.clone()))
                        .streaming(Rpc(rpc), request)
                        .await
                }
                None => Status::unimplemented("").into_http(),
            })
        }
    });
    let incoming = TcpIncoming::bind(format!("127.0.0.1:{port}").parse()?)?;
    println!("{}", incoming.local_addr()?.port());
    Server::builder()
        .serve_with_incoming(serve, incoming)
        .await?;
    Ok(())
}
