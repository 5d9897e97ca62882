// Deletes a plant over Connect: npx node examples/clients/delete-plant-connect.ts http://127.0.0.1:8080 TOKEN 42
// In a browser, use the transport of @connectrpc/connect-web; everything else stays the same.
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { bearer, PlantService } from "plantstore/connect";

const [baseUrl = "http://127.0.0.1:8080", token = "", id = "1"] = process.argv.slice(2);

const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [bearer(token)] });
const client = createClient(PlantService, transport);

// Use the same key when you repeat this call, so that it gets the response of the first one.
const headers = { "idempotency-key": `"${crypto.randomUUID()}"` };

try {
  await client.deletePlant({ id: BigInt(id) }, { timeoutMs: 5_000, headers });
  console.log(`plant ${id} is deleted`);
} catch (reason) {
  const error = ConnectError.from(reason);
  if (error.code === Code.NotFound) console.log(`there is no plant ${id}`);
  else console.log(`${Code[error.code]}: ${error.rawMessage}`);
}
