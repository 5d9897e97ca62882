//! Generates the service from plantstore.binpb, which `buf build` writes; a `protoc` is not needed.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=plantstore.binpb");
    let definition = prost_types::FileDescriptorSet::decode(&*std::fs::read("plantstore.binpb")?)?;
    tonic_prost_build::configure().build_client(false).compile_fds(definition)?;
    Ok(())
}
