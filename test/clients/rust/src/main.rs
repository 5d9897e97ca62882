//! Deletes plants with the client of tonic.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};

#[allow(dead_code, reason = "the error record of REST is among the messages")]
mod plantstore {
    tonic::include_proto!("plantstore.v1");
}

use plantstore::DeletePlantRequest;
use plantstore::plant_service_client::PlantServiceClient;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut client = PlantServiceClient::new(connect().await?);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split(' ').collect();
        let request = request(words[0].parse()?, words[1], words[2])?;
        match client.delete_plant(request).await {
            Ok(_) => println!("{}", Code::Ok as i32),
            Err(status) => println!("{} {}", status.code() as i32, status.message()),
        }
    }
    Ok(())
}

/// Connects to the server of the first argument, over TLS if the second names an authority to trust.
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

fn request(id: i64, token: &str, deadline_ms: &str) -> Result<Request<DeletePlantRequest>, Failure> {
    let mut request = Request::new(DeletePlantRequest { id: Some(id) });
    if token != "-" {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse()?);
    }
    if deadline_ms != "-" {
        request.set_timeout(Duration::from_millis(deadline_ms.parse()?));
    }
    Ok(request)
}
