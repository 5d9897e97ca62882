import { createSecureServer, createServer, type ServerHttp2Stream } from "node:http2";
import { listen, serve } from "./serve.ts";
import { certificate } from "./tls.ts";

// The floor for HTTP/2 is node:http2's core `stream` event without credentials, routing and a store. The response to
// each stream, after its body, is an empty gRPC message with trailers that say OK.
const emptyEnvelope = Buffer.alloc(5);
const header = { ":status": 200, "content-type": "application/grpc+proto" };
const trailer = { "grpc-status": "0" };

function respond(stream: ServerHttp2Stream): void {
  stream.resume().on("end", () => {
    stream.respond(header, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailer));
    stream.end(emptyEnvelope);
  });
}

await serve(() =>
  listen((certificate === undefined ? createServer() : createSecureServer(certificate)).on("stream", respond)),
);
