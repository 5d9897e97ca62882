// Deletes a plant without generated code: npx node examples/clients/delete-plant-proto-loader.ts 127.0.0.1:8080 TOKEN 42
import { credentials, makeGenericClientConstructor, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [address = "127.0.0.1:8080", token = "", id = "1", timeoutMs = "5000"] = process.argv.slice(2);

// proto-loader reads 18446744073709551617 as 1, and text that is not a number as 0.
if (BigInt.asIntN(64, BigInt(id)) !== BigInt(id)) throw new RangeError(`the id must be an int64, got ${id}`);

const definition = loadSync("plantstore/v1/plant_service.proto", {
  // In this repository, and in a project that installs the package.
  includeDirs: ["proto", "protoport/gateway/proto", "node_modules/plantstore/proto"],
  // An int64 as a number would lose digits above 2^53.
  longs: String,
});
const service = definition["plantstore.v1.PlantService"];
// Messages have a format, services do not.
if (service === undefined || "format" in service) throw new Error("the definition has no PlantService");
const PlantService = makeGenericClientConstructor(service, "PlantService");

// Without TLS, for a server on this machine only; with TLS use credentials.createSsl().
const client = new PlantService(address, credentials.createInsecure());

const metadata = new Metadata();
metadata.set("authorization", `Bearer ${token}`);
// Use the same key when you repeat this call, so that it gets the response of the first one.
metadata.set("idempotency-key", `"${crypto.randomUUID()}"`);

const options = { deadline: Date.now() + Number(timeoutMs) };
client["deletePlant"]?.({ id: String(BigInt(id)) }, metadata, options, (error: ServiceError | null) => {
  if (error === null) console.log(`plant ${id} is deleted`);
  else if (error.code === status.NOT_FOUND) console.log(`there is no plant ${id}`);
  else console.log(`${status[error.code]}: ${error.details}`);
  client.close();
});
