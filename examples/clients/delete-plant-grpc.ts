// Deletes a plant over gRPC: npx node examples/clients/delete-plant-grpc.ts 127.0.0.1:8080 TOKEN 42
import { credentials, Metadata, status } from "@grpc/grpc-js";
import { createPlantClient } from "plantstore/client";

const [address = "127.0.0.1:8080", token = "", id = "1"] = process.argv.slice(2);

// In clear: for a server on this machine only. Leave the credentials out for TLS.
const client = createPlantClient({ address, token, credentials: credentials.createInsecure() });

const deadline = Date.now() + 5_000;
client.deletePlant({ id: BigInt(id) }, new Metadata(), { deadline }, (error) => {
  if (error === null) console.log(`plant ${id} is deleted`);
  else if (error.code === status.NOT_FOUND) console.log(`there is no plant ${id}`);
  else console.log(`${status[error.code]}: ${error.details}`);
  client.close();
});
