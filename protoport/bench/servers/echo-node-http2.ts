import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { countPath, streamedBytes } from "./echo-service.ts";
import { listen, serve } from "./serve.ts";

// The floor for large messages and long streams. A listener for node:http2's core `stream` event sends the received
// bytes back, or sends a prepared message repeatedly with backpressure. The server decodes no message.
const header = { ":status": 200, "content-type": "application/grpc+proto" };
const trailer = { "grpc-status": "0" };

// An envelope with BytesValue{value}, which is five envelope bytes, the tag and length of field 1, and the value's
// bytes.
const message = Buffer.from([0, 0, 0, 0, streamedBytes + 2, 0x0a, streamedBytes, ...Buffer.alloc(streamedBytes, "x")]);

/**
 * The offset of the number in the request, which is an envelope with UInt32Value{value}. The envelope's prefix and the
 * tag of field 1 precede the number.
 */
const numberAt = 6;

async function respond(stream: ServerHttp2Stream, path: string | undefined): Promise<void> {
  const pieces: Buffer[] = await stream.toArray();
  const body = Buffer.concat(pieces);
  stream.respond(header, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailer));
  if (path === countPath) await writeMessages(stream, readVarint(body, numberAt));
  else stream.write(body);
  stream.end();
}

async function writeMessages(stream: ServerHttp2Stream, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) if (!stream.write(message)) await once(stream, "drain");
}

function readVarint(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from, shift = 0; at < bytes.length; at += 1, shift += 7) value |= ((bytes[at] ?? 0) & 0x7f) << shift;
  return value;
}

await serve(() =>
  listen(
    createServer().on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      // When the load ends, it closes its connections, with streams in progress.
      respond(stream, headers[":path"]).catch(() => stream.destroy());
    }),
  ),
);
