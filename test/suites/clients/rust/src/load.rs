//! Puts load on a server, and prints how often each outcome occurred, followed by an empty line.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tonic::codegen::tokio_stream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

mod streams {
    tonic::include_proto!("streams.v1");
}

use streams::stream_service_client::StreamServiceClient;
use streams::{CountRequest, Piece};

/// Concurrent calls.
const CALLERS: usize = 64;

/// The content that each sent piece has.
const CONTENT_BYTES: usize = 64 * 1024;

#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, u32>>);

impl Counts {
    fn add(&self, seen: String) {
        *self.0.lock().unwrap().entry(seen).or_default() += 1;
    }

    fn print(&self) {
        for (seen, times) in self.0.lock().unwrap().iter() {
            println!("{times} {seen}");
        }
        println!();
    }
}

/// Deletes plants 1, 2, 3 … for some seconds. In outcomes, "#" stands for the plant.
pub async fn call_for<F, Deleted>(seconds: u64, delete: F)
where
    F: Fn(i64) -> Deleted + Clone + Send + 'static,
    Deleted: Future<Output = String> + Send,
{
    let counts = Arc::new(Counts::default());
    let ids = Arc::new(AtomicI64::new(0));
    let call = {
        let counts = counts.clone();
        move || {
            let id = ids.fetch_add(1, Ordering::Relaxed) + 1;
            let (counts, deleted) = (counts.clone(), delete(id));
            async move { counts.add(deleted.await.replace(&format!(" {id} "), " # ")) }
        }
    };
    // Without an open connection, some clients would open one for each call.
    call().await;
    let until = Instant::now() + Duration::from_secs(seconds);
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                while Instant::now() < until {
                    call().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    counts.print();
}

/// Sends pieces, and reads the echoes meanwhile.
pub async fn echo(channel: Channel, pieces: i32) {
    let content = vec![0; CONTENT_BYTES];
    let sent = (0..pieces).map(move |number| Piece { number, content: content.clone() });
    let answer = StreamServiceClient::new(channel).echo(tokio_stream::iter(sent)).await;
    read(answer.map(|answer| answer.into_inner())).await;
}

/// Requests pieces.
pub async fn count(channel: Channel, pieces: i32) {
    let answer = StreamServiceClient::new(channel).count(CountRequest { pieces }).await;
    read(answer.map(|answer| answer.into_inner())).await;
}

/// Counts a stream's pieces by size, and its outcome.
async fn read(stream: Result<Streaming<Piece>, Status>) {
    let counts = Counts::default();
    let ended = match stream {
        Ok(mut stream) => read_pieces(&mut stream, &counts).await,
        Err(status) => Err(status),
    };
    counts.add(crate::outcome_of(ended));
    counts.print();
}

async fn read_pieces(stream: &mut Streaming<Piece>, counts: &Counts) -> Result<(), Status> {
    let mut wanted = 0;
    while let Some(Piece { number, content }) = stream.message().await? {
        counts.add(if number == wanted {
            format!("{} bytes", content.len())
        } else {
            format!("number {number} for {wanted}")
        });
        wanted += 1;
    }
    Ok(())
}
