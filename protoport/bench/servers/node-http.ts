import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { listen, serve } from "./serve.ts";
import { certificate } from "./tls.ts";

// The floor for HTTP/1.1 is node:http without credentials, routing and a store. The response to DELETE has status 204.
// The response to any other method, after its body, is the empty Connect JSON message.
const emptyMessage = Buffer.from("{}");

function respond(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === "DELETE") {
    response.writeHead(204).end();
    return;
  }
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": emptyMessage.byteLength });
    response.end(emptyMessage);
  });
}

await serve(() => listen(certificate === undefined ? createServer(respond) : createTlsServer(certificate, respond)));
