import { create, createRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { Server } from "node:net";
import type { TlsOptions } from "node:tls";
import { createTestGateway } from "../../../../testing/src/gateway/test-gateway.ts";
import { conformanceService } from "./conformance-service.ts";
import { addConformanceHandlers } from "./grpc-js-handlers.ts";
import { HTTPVersion } from "./gen/connectrpc/conformance/v1/config_pb.ts";
// oxfmt-ignore
import { ServerCompatRequestSchema, ServerCompatResponseSchema, type ServerCompatRequest
} from "./gen/connectrpc/conformance/v1/server_compat_pb.ts";
// oxfmt-ignore
import { ConformanceService, file_connectrpc_conformance_v1_service
} from "./gen/connectrpc/conformance/v1/service_pb.ts";

// The server under test, as the suite starts it. A request on stdin describes the server, the response on stdout has
// its address, and SIGTERM stops it. Four bytes with the length precede each message.

const request = fromBinary(ServerCompatRequestSchema, await readDelimited(process.stdin));
const gateway = createTestGateway({
  routes: (router) =>
    process.env["HANDLERS"]?.startsWith("grpc-js") === true
      ? addConformanceHandlers(router, process.env["HANDLERS"] === "grpc-js with messages")
      : void router.service(ConformanceService, conformanceService),
  // The suite expects its own request in the response, packed in an Any.
  jsonOptions: { registry: createRegistry(file_connectrpc_conformance_v1_service) },
  ...(request.messageReceiveLimit === 0 ? {} : { readMaxBytes: request.messageReceiveLimit }),
});
const host = "127.0.0.1";
const { port, close } = await (process.env["SERVER"] === "mounted" ? mount(request) : listen(request));
const pemCert = request.serverCreds?.cert ?? new Uint8Array();
writeDelimited(toBinary(ServerCompatResponseSchema, create(ServerCompatResponseSchema, { host, port, pemCert })));
await once(process, "SIGTERM");
await close();

async function listen(from: ServerCompatRequest): Promise<{ port: number; close: () => Promise<void> }> {
  return { port: (await gateway.listen({ host, port: 0, ...tlsOf(from) })).port, close: () => gateway.close() };
}

/** Mounts the gateway's handler in a node server. */
async function mount(from: ServerCompatRequest): Promise<{ port: number; close: () => Promise<void> }> {
  const server = serverOf(from).listen(0, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    port: address.port,
    close: async () => {
      server.close();
      await gateway.close();
    },
  };
}

function serverOf(from: ServerCompatRequest): Server {
  const { tls } = tlsOf(from);
  // Node closes connections idle for five seconds. A request sent at that moment fails for such a client.
  const options = { ...tls, keepAliveTimeout: 0 };
  if (from.httpVersion === HTTPVersion.HTTP_VERSION_1)
    return tls === undefined
      ? http.createServer(options, gateway.handler)
      : https.createServer(options, gateway.handler);
  return tls === undefined ? http2.createServer(gateway.handler) : http2.createSecureServer(tls, gateway.handler);
}

function tlsOf({ serverCreds, clientTlsCert }: ServerCompatRequest): { readonly tls?: TlsOptions } {
  if (serverCreds === undefined) return {};
  const identity = { cert: Buffer.from(serverCreds.cert), key: Buffer.from(serverCreds.key) };
  if (clientTlsCert.byteLength === 0) return { tls: identity };
  return { tls: { ...identity, ca: Buffer.from(clientTlsCert), requestCert: true, rejectUnauthorized: true } };
}

async function readDelimited(from: AsyncIterable<Buffer>): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of from) {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.byteLength >= 4 && bytes.byteLength >= 4 + bytes.readUInt32BE()) break;
  }
  return bytes.subarray(4, 4 + bytes.readUInt32BE());
}

function writeDelimited(bytes: Uint8Array): void {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.byteLength);
  process.stdout.write(Buffer.concat([length, bytes]));
}
