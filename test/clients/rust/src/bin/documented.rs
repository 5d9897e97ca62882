//! Runs what docs/clients.md shows.

use std::time::Duration;

use tonic::Request;

#[allow(dead_code, reason = "the error record of REST is among the messages")]
mod plantstore {
    tonic::include_proto!("plantstore.v1");
}

use plantstore::DeletePlantRequest;
use plantstore::plant_service_client::PlantServiceClient;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = std::env::var("TOKEN")?;
    // The lines of docs/clients.md stand here.
    Ok(())
}
