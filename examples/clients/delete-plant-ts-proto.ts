// Deletes a plant with the stub of ts-proto: npx node examples/clients/delete-plant-ts-proto.ts 127.0.0.1:8080 TOKEN 42
import { credentials, Metadata, status } from "@grpc/grpc-js";
// Generated with outputServices=grpc-js, and with forceLong=bigint, so that an int64 above 2^53 is exact.
import { PlantServiceClient } from "plantstore/client";

const [address = "127.0.0.1:8080", token = "", id = "1", timeoutMs = "5000"] = process.argv.slice(2);

// Without TLS, for a server on this machine only; with TLS use credentials.createSsl().
const client = new PlantServiceClient(address, credentials.createInsecure());

const metadata = new Metadata();
metadata.set("authorization", `Bearer ${token}`);
// Use the same key when you repeat this call, so that it gets the response of the first one.
metadata.set("idempotency-key", `"${crypto.randomUUID()}"`);

client.deletePlant({ id: BigInt(id) }, metadata, { deadline: Date.now() + Number(timeoutMs) }, (error) => {
  if (error === null) console.log(`plant ${id} is deleted`);
  else if (error.code === status.NOT_FOUND) console.log(`there is no plant ${id}`);
  else console.log(`${status[error.code]}: ${error.details}`);
  client.close();
});
