// Deletes a plant over gRPC: npx node examples/clients/delete-plant-grpc.ts 127.0.0.1:8080 TOKEN 42
import { credentials } from "@grpc/grpc-js";
import { createPlantClient, PlantClientError } from "plantstore/client";

const [address = "127.0.0.1:8080", token = "", id = "1"] = process.argv.slice(2);

// Without TLS, for a server on this machine only. Omit the credentials for TLS.
const plants = createPlantClient({ address, token, credentials: credentials.createInsecure() });

try {
  const outcome = await plants.delete(BigInt(id));
  console.log(outcome === "deleted" ? `plant ${id} is deleted` : `there is no plant ${id}`);
} catch (error) {
  if (!(error instanceof PlantClientError)) throw error;
  console.log(error.message);
}
plants.close();
