//! Deletes a plant over gRPC. In the folder of Cargo.toml:
//!
//!     buf build ../../.. --path ../../../proto/plantstore --as-file-descriptor-set -o definitions.binpb
//!     cargo run -- http://127.0.0.1:8080 TOKEN 42

use std::time::Duration;

use tonic::{Code, Request};

#[allow(dead_code, reason = "the error record of REST is among the messages")]
mod plantstore {
    tonic::include_proto!("plantstore.v1");
}

use plantstore::DeletePlantRequest;
use plantstore::plant_service_client::PlantServiceClient;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, url, token, id] = std::env::args().collect::<Vec<_>>().try_into().expect("a URL, a token and an id");
    let id = id.parse()?;
    let mut client = PlantServiceClient::connect(url).await?;
    let mut request = Request::new(DeletePlantRequest { id: Some(id) });
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse()?);
    request.set_timeout(Duration::from_secs(5));
    match client.delete_plant(request).await {
        Ok(_) => println!("plant {id} is deleted"),
        Err(status) if status.code() == Code::NotFound => println!("there is no plant {id}"),
        Err(status) => return Err(status.into()),
    }
    Ok(())
}
