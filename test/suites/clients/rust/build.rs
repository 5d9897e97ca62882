//! Generates the client from definitions.binpb, which `buf build` writes; a `protoc` is not needed.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=definitions.binpb");
    let definition = prost_types::FileDescriptorSet::decode(&*std::fs::read("definitions.binpb")?)?;
    tonic_prost_build::configure().build_server(false).compile_fds(definition)?;
    Ok(())
}
