import { createServer } from "node:http";
import { create, createRegistry, type JsonReadOptions, type JsonWriteOptions } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { listenOnLoopback } from "../../../../testing/src/http/listen-on-loopback.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../testing/src/comparison.ts";
import { KitchenSink, NestedSchema } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { createRestTransport, type RestTransportOptions } from "../../../src/index.ts";

// Calls a server with two values for each createRestTransport option, and compares requests and outcomes.

type Options = Partial<RestTransportOptions>;
type Client = ReturnType<typeof createClient<typeof KitchenSink>>;

/** A server's response. */
type Reply = { readonly status?: number; readonly body: string };

/** Compares the request that the server gets, and the call's outcome. */
async function compare(
  off: Options,
  on: Options,
  call: (client: Client) => Promise<object> = (client) => client.query({ fString: "a" }),
  { status = 200, body }: Reply = { body: "{}" },
): Promise<Differs> {
  const received: unknown[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (data) => (text += String(data)));
    request.on("end", () => {
      received.push([request.url, text, request.headers["x-one"], request.headers["grpc-timeout"] !== undefined]);
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    });
  });
  const baseUrl = await listenOnLoopback(server);
  try {
    return await compareValues(off, on, async (options) => {
      received.length = 0;
      try {
        const client = createClient(KitchenSink, createRestTransport({ baseUrl, ...options }));
        return [await call(client), ...received];
      } catch (error) {
        const { code, rawMessage } = ConnectError.from(error);
        return [...received, code, rawMessage];
      }
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const registry = createRegistry(NestedSchema);
const any = anyPack(NestedSchema, create(NestedSchema, { text: "a" }));
const sendAny = (client: Client): Promise<object> => client.create({ any });

const effects: EffectsOf<RestTransportOptions> = {
  baseUrl: async () => {
    const other = createServer((_, response) => void response.writeHead(404).end());
    const baseUrl = await listenOnLoopback(other);
    try {
      return await compare({}, { baseUrl });
    } finally {
      other.close();
      other.closeAllConnections();
    }
  },
  interceptors: () =>
    compare(
      {},
      {
        interceptors: [
          (next) => (request) => {
            request.header.set("x-one", "1");
            return next(request);
          },
        ],
      },
    ),
  fetch: () =>
    compare(
      {},
      {
        fetch: () =>
          Promise.resolve(new Response('{"rpc":"own"}', { headers: { "content-type": "application/json" } })),
      },
    ),
  registry: () => compare({}, { registry }, sendAny),
  jsonOptions: () =>
    compare({}, { jsonOptions: { useProtoFieldName: true } }, (client) => client.create({ fString: "a" })),
  readErrorBody: () =>
    compare({}, { readErrorBody: () => new ConnectError("own", Code.DataLoss) }, undefined, {
      status: 400,
      body: '{"reason":"own"}',
    }),
  onUnbound: () => compare({}, { onUnbound: "connect" }, (client) => client.unbound({})),
  readMaxBytes: () => compare({}, { readMaxBytes: 100 }, undefined, { body: JSON.stringify({ rpc: "x".repeat(200) }) }),
  defaultTimeoutMs: () => compare({}, { defaultTimeoutMs: 3_600_000 }),
};

const jsonEffects: EffectsOf<JsonReadOptions & JsonWriteOptions> = {
  ignoreUnknownFields: () =>
    compare({}, { jsonOptions: { ignoreUnknownFields: false } }, undefined, { body: '{"unknown":1}' }),
  registry: () => compare({}, { jsonOptions: { registry } }, sendAny),
  // The value is refused.
  recursionLimit: () => compare({}, { jsonOptions: { recursionLimit: 1 } }),
  alwaysEmitImplicit: () =>
    compare({}, { jsonOptions: { alwaysEmitImplicit: true } }, (client) => client.create({ fString: "a" })),
  enumAsInteger: () => compare({}, { jsonOptions: { enumAsInteger: true } }, (client) => client.create({ fEnum: 1 })),
  useProtoFieldName: () =>
    compare({}, { jsonOptions: { useProtoFieldName: true } }, (client) => client.create({ fString: "a" })),
};

test.each([
  ...Object.entries(effects).map(([name, comparison]) => ({ name, comparison })),
  ...Object.entries(jsonEffects).map(([name, comparison]) => ({ name: `jsonOptions.${name}`, comparison })),
])("the option $name of createRestTransport has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
