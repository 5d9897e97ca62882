import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { uploadPath } from "./echo-service.ts";
import { listen, serve } from "./serve.ts";

// Echoes large messages over HTTP/1.1 on node:http, and counts an upload's bytes. protobuf-es decodes and encodes the
// messages. The floor echoes the messages unchanged.
const isTyped = process.env["ECHO_MESSAGES"] === "protobuf-es";

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === uploadPath) return await count(request, response);
  const pieces: Buffer[] = await request.toArray();
  const message = Buffer.concat(pieces);
  const body = isTyped ? toBinary(BytesValueSchema, fromBinary(BytesValueSchema, message)) : message;
  response.writeHead(200, { "content-type": "application/proto", "content-length": body.byteLength }).end(body);
}

async function count(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let bytes = 0;
  for await (const piece of request) bytes += piece.byteLength;
  response.writeHead(200, { "content-type": "application/json" }).end(String(bytes));
}

await serve(() =>
  listen(
    createServer((request, response) => {
      // When the load ends, it closes its connections, with requests in progress.
      respond(request, response).catch(() => response.destroy());
    }),
  ),
);
