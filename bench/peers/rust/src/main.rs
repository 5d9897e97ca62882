//! The plant service for the bench, on tonic or axum, with a credential and the plants in a set.

mod rest;

use std::collections::HashSet;
use std::io::BufRead;
use std::sync::{LazyLock, Mutex};

use axum::serve::ListenerExt;
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

mod plantstore {
    tonic::include_proto!("plantstore.v1");
}

use plantstore::DeletePlantRequest;
use plantstore::plant_service_server::{PlantService, PlantServiceServer};

/// One in this many calls does not find a plant.
const CALLS_PER_MISS: u64 = 1_000;

const PLANT_COUNT: i64 = 1_000;

/// The only valid token's SHA-256.
static EXPECTED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let token = std::env::var("BENCH_TOKEN").expect("BENCH_TOKEN is the token that the load sends");
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
});

struct Plants {
    ids: HashSet<i64>,
    calls: u64,
}

impl Plants {
    /// Returns whether the plant exists; it is not removed, so that the load can continue forever.
    fn delete(&mut self, id: i64) -> bool {
        self.calls += 1;
        !self.calls.is_multiple_of(CALLS_PER_MISS) && self.ids.contains(&id)
    }
}

struct Service(Mutex<Plants>);

#[tonic::async_trait]
impl PlantService for Service {
    async fn delete_plant(&self, request: Request<DeletePlantRequest>) -> Result<Response<()>, Status> {
        let id = request.into_inner().id.ok_or_else(|| Status::invalid_argument("id is missing"))?;
        if self.0.lock().expect("no call panics").delete(id) {
            return Ok(Response::new(()));
        }
        Err(Status::not_found(format!("plant {id} not found")))
    }
}

fn authenticate(request: Request<()>) -> Result<Request<()>, Status> {
    let header = request.metadata().get("authorization");
    match header.and_then(|value| value.to_str().ok()).and_then(bearer_token) {
        Some(token) if is_expected(token) => Ok(request),
        _ => Err(Status::unauthenticated("a bearer token is required")),
    }
}

fn is_expected(token: &str) -> bool {
    digest(&SHA256, token.as_bytes()).as_ref().ct_eq(&EXPECTED).into()
}

/// Returns the token of `Bearer <token>` if it has the syntax of RFC 6750, section 2.1.
fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, rest) = header.split_once(' ')?;
    let token = rest.trim_start_matches(' ');
    let symbols = token.trim_end_matches('=');
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let well_formed = scheme.eq_ignore_ascii_case("bearer") && !symbols.is_empty() && symbols.bytes().all(is_symbol);
    well_formed.then_some(token)
}

/// Responds to each line from the driver, and exits when its input ends.
fn obey_driver() {
    // There is no garbage to collect before the driver measures the memory.
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        println!("settled");
    }
    std::process::exit(0);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    LazyLock::force(&EXPECTED);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(obey_driver);
    let plants = Mutex::new(Plants { ids: (1..=PLANT_COUNT).collect(), calls: 0 });
    if std::env::var("BENCH_PROTOCOL").is_ok_and(|protocol| protocol == "rest") {
        axum::serve(listener.tap_io(|socket| _ = socket.set_nodelay(true)), rest::router(plants)).await?;
        return Ok(());
    }
    let service = PlantServiceServer::with_interceptor(Service(plants), authenticate);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().add_service(service).serve_with_incoming(incoming).await?;
    Ok(())
}
