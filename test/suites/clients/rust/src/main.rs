//! Deletes plants with tonic's client.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

mod load;

#[allow(dead_code, reason = "the error record of REST is among the messages")]
mod plantstore {
    tonic::include_proto!("plantstore.v1");
}

use plantstore::DeletePlantRequest;
use plantstore::plant_service_client::PlantServiceClient;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let channel = connect().await?;
    let client = PlantServiceClient::new(channel.clone());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split(' ').collect();
        let (what, token, amount) = (words[0], words[1], words[2]);
        match what {
            "load" => {
                let (client, token) = (client.clone(), token.to_owned());
                load::call_for(amount.parse()?, move |id| delete(client.clone(), request(id, &token, "-"))).await;
            }
            "echo" => load::echo(channel.clone(), amount.parse()?).await,
            "count" => load::count(channel.clone(), amount.parse()?).await,
            id => println!("{}", delete(client.clone(), request(id.parse()?, token, amount)).await),
        }
    }
    Ok(())
}

async fn delete(mut client: PlantServiceClient<Channel>, request: Request<DeletePlantRequest>) -> String {
    outcome_of(client.delete_plant(request).await.map(|_| ()))
}

/// The gRPC code, followed by a message if the call failed.
fn outcome_of(outcome: Result<(), Status>) -> String {
    match outcome {
        Ok(()) => (Code::Ok as i32).to_string(),
        Err(status) => format!("{} {}", status.code() as i32, status.message()),
    }
}

/// Connects to the server in the first argument, over TLS if the second names an authority to trust.
async fn connect() -> Result<Channel, Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let authority = &arguments[1];
    let Some(trusted) = arguments.get(2) else {
        return Ok(Endpoint::from_shared(format!("http://{authority}"))?.connect().await?);
    };
    let certificate = Certificate::from_pem(std::fs::read(trusted)?);
    let tls = ClientTlsConfig::new().ca_certificate(certificate);
    let endpoint = Endpoint::from_shared(format!("https://{authority}"))?.tls_config(tls)?;
    Ok(endpoint.connect().await?)
}

fn request(id: i64, token: &str, deadline_ms: &str) -> Request<DeletePlantRequest> {
    let mut request = Request::new(DeletePlantRequest { id: Some(id) });
    if token != "-" {
        let credential = format!("Bearer {token}").parse().expect("a token is ASCII");
        request.metadata_mut().insert("authorization", credential);
    }
    if deadline_ms != "-" {
        request.set_timeout(Duration::from_millis(deadline_ms.parse().expect("a deadline is a number")));
    }
    request
}
