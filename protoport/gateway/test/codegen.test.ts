import { inspect } from "node:util";
// oxfmt-ignore
import { createFileRegistry, type DescMethod, type DescMethodUnary, fromBinary, type MessageShape
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { createGrpcTransport } from "../../proxy/src/client/entry.ts";
import { createProxy } from "../../proxy/src/create-proxy.ts";
import { createFetchGateway } from "../src/fetch/entry.ts";
import { type GatewayOptions, parseHttpRules } from "../src/index.ts";
// oxfmt-ignore
import { createTestGateway, descriptorSetOf, encodeMessage, exchange, rpcRequest, wireFormats
} from "@protoport/testing";
import { KitchenSink, SinkSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { exchangeFetch, type HttpRequest, type HttpResponse } from "@protoport/testing/http";

/** The functions that were generated since the test began, as source. */
const generated: string[] = [];
vi.stubGlobal(
  "Function",
  new Proxy(Function, {
    construct(target, args: string[]) {
      const text = args.at(-1) ?? "";
      // Ignores the function with which the gateway checks whether code generation is allowed.
      if (text.includes("function")) generated.push(text);
      return Reflect.construct(target, args);
    },
  }),
);
beforeEach(() => void generated.splice(0));
afterAll(() => vi.unstubAllGlobals());

/** Returns the kitchen sink's `Create` with new descriptors, because generated functions are cached per descriptor. */
function freshCreate(): DescMethodUnary {
  const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSetOf(KitchenSink.file)));
  const rpc = files.getService(KitchenSink.typeName)?.method["create"];
  if (rpc === undefined || !isUnary(rpc)) throw new Error("the kitchen sink has no unary RPC Create");
  return rpc;
}

const isUnary = (rpc: DescMethod): rpc is DescMethodUnary => rpc.methodKind === "unary";

/** Registers an RPC that responds with its request, or with an error that has the request as a detail. */
function sinkRoutes(own: Parameters<ConnectRouter["rpc"]>[2] = {}): (router: ConnectRouter) => void {
  return (router) => {
    const rpc = freshCreate();
    const implementation = (sent: MessageShape<typeof rpc.input>): { rpc: string; sink: typeof sent } => {
      const { fString } = { fString: "", ...sent };
      if (fString !== "fail") return { rpc: "Create", sink: sent };
      const detail = { desc: rpc.input, value: { ...sent } };
      throw new ConnectError("as asked", Code.InvalidArgument, undefined, [detail]);
    };
    router.rpc(rpc, implementation, own);
  };
}

const sink = { fInt64: 7n, fString: "a text that is longer than the short ones", fBytes: Uint8Array.of(1, 2) };
const create = `/${KitchenSink.typeName}/Create`;
const rpcFormats = Object.values(wireFormats).filter(({ protocol }) => protocol !== "rest");

/** A request in each protocol and format. */
const requests: readonly HttpRequest[] = [
  ...["a text", "fail"].map((text) => {
    const body = Buffer.from(JSON.stringify({ fInt64: "7", fString: text }));
    return { httpMethod: "POST", path: "/v1/sinks", header: [["content-type", "application/json"] as const], body };
  }),
  ...rpcFormats.map((format) => rpcRequest(format, encodeMessage(format, SinkSchema, sink), [], create)),
];

/** Sends all requests, and returns the responses. */
const askAll = async (ask: (request: HttpRequest) => Promise<HttpResponse>): Promise<readonly unknown[]> =>
  (await Promise.all(requests.map(ask))).map(({ httpStatus, body }) => [httpStatus, String(body)]);

async function askGateway(options: GatewayOptions): Promise<readonly unknown[]> {
  const gateway = createTestGateway(options);
  const address = await gateway.listen();
  const answers = await askAll((request) => exchange(address, "2", request));
  await gateway.close();
  return answers;
}

function askFetchGateway(codegen: boolean): Promise<readonly unknown[]> {
  const { fetch } = createFetchGateway({ routes: sinkRoutes(), codegen });
  return askAll((request) => exchangeFetch(fetch, request));
}

async function askProxy(codegen: boolean): Promise<readonly unknown[]> {
  const upstream = createTestGateway({ routes: sinkRoutes(), codegen: false });
  const { port } = await upstream.listen();
  const server = { upstream: `http://127.0.0.1:${port}`, descriptors: descriptorSetOf(KitchenSink.file) };
  const proxy = await createProxy({ upstreams: [server], codegen });
  const address = await proxy.listen();
  const answers = await askAll((request) => exchange(address, "2", request));
  await proxy.close();
  await upstream.close();
  return answers;
}

async function callByTransport(codegen: boolean): Promise<string> {
  const upstream = createTestGateway({ routes: sinkRoutes(), codegen: false });
  const { port } = await upstream.listen();
  await using transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}`, codegen });
  const { message } = await transport.unary(freshCreate(), undefined, undefined, undefined, { ...sink });
  await upstream.close();
  return inspect(message, { depth: 4 });
}

const jsonAndBinary = { jsonOptions: { useProtoFieldName: true }, binaryOptions: { writeUnknownFields: true } };
const askWithOptions = (codegen: boolean) => askGateway({ routes: sinkRoutes(jsonAndBinary), codegen });

test.each([
  { name: "createGateway", ask: (codegen: boolean) => askGateway({ routes: sinkRoutes(), codegen }) },
  { name: "createGateway with JSON and binary options", ask: askWithOptions },
  { name: "createFetchGateway", ask: askFetchGateway },
  { name: "createProxy", ask: askProxy },
  { name: "createGrpcTransport", ask: callByTransport },
])("without codegen, $name gives the same responses and generates no code", async ({ ask }) => {
  const without = await ask(false);
  expect(generated).toEqual([]);
  expect(await ask(true)).toEqual(without);
  expect(generated).not.toEqual([]);
});

test("parseHttpRules() reads external rules without generated code", () =>
  expect([parseHttpRules('{"rules": [{"selector": "a.B.C", "get": "/c"}]}').length, generated]).toEqual([1, []]));

test("a gateway generates code by default", async () => {
  await askGateway({ routes: sinkRoutes() });
  expect(generated).not.toEqual([]);
});
