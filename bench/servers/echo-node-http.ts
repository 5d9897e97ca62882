import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen, serve } from "./serve.ts";

// The floor of large messages over HTTP/1.1: node:http, which sends back the bytes that it got. Nothing is decoded.
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = await request.toArray();
  const body = Buffer.concat(pieces);
  response.writeHead(200, { "content-type": "application/proto", "content-length": body.byteLength }).end(body);
}

await serve(() =>
  listen(
    createServer((request, response) => {
      // The load leaves at its end whatever is under way.
      answer(request, response).catch(() => response.destroy());
    }),
  ),
);
