import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen, serve } from "./serve.ts";

// The floor of HTTP/1.1: node:http with no credential, no routing and no store. A DELETE gets the 204 of
// REST; anything else is read to its end and gets the empty JSON message of Connect.
const emptyMessage = Buffer.from("{}");

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === "DELETE") {
    response.writeHead(204).end();
    return;
  }
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": emptyMessage.byteLength });
    response.end(emptyMessage);
  });
}

await serve(() => listen(createServer(answer)));
