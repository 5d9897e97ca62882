import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack, DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { Client, credentials, Metadata, ServerInterceptingCall, status } from "@grpc/grpc-js";
import type {
  MethodDefinition,
  sendUnaryData,
  ServerDuplexStream,
  ServerInterceptor,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { decodeEnvelopes, encodeEnvelope, waitSomeTurns } from "@protoport/testing";
import { loadGarden, startGarden, type TestGarden } from "./garden.ts";
import { callGarden, type Message } from "./grpc-js-client.ts";

type Callback = sendUnaryData<Message>;

async function send(garden: TestGarden, path: string, init: RequestInit = {}): Promise<readonly [number, string]> {
  const response = await fetch(`http://127.0.0.1:${garden.address.port}${path}`, init);
  return [response.status, await response.text()];
}

function post(body: string, contentType = "application/json"): RequestInit {
  return { method: "POST", body, headers: { "content-type": contentType } };
}

/** A google.rpc.Status with the code NOT_FOUND and a Duration as detail. */
function statusWithDetail(): Buffer {
  const detail = toBinary(AnySchema, anyPack(DurationSchema, create(DurationSchema, { seconds: 3n })));
  return Buffer.concat([Buffer.from([0x08, status.NOT_FOUND, 0x1a, detail.byteLength]), detail]);
}

const garden: UntypedServiceImplementation = {
  getTree(call: ServerUnaryCall<Message, Message>, callback: Callback) {
    const { treeId, bedName, choice } = call.request;
    const metadata = new Metadata();
    metadata.set("x-head", "1");
    metadata.set("grpc-status", "7");
    call.sendMetadata(metadata);
    const failure = new Metadata();
    failure.set("grpc-status-details-bin", statusWithDetail());
    failure.set("x-why", "frost");
    if (treeId === "404") return callback({ code: status.NOT_FOUND, details: "no such tree", metadata: failure });
    callback(null, { treeId, speciesName: JSON.stringify([bedName, choice]), heightCm: 0, kind: "OAK" });
  },
  addTrees(call: ServerReadableStream<Message, Message>, callback: Callback) {
    let treeCount = 0;
    call.on("data", () => (treeCount += 1));
    call.on("end", () => callback(null, { treeCount }));
  },
  listTrees(call: ServerWritableStream<Message, Message>) {
    for (let treeId = 1; treeId <= Number(call.request["pageSize"]); treeId += 1) call.write({ treeId });
    call.end();
  },
};

test.each(
  // oxfmt-ignore
  [
    ["a GET request", "/v1/beds/1/trees/7?choice.withLeaves=false",
      [200, { treeId: "7", speciesName: '["beds/1",{"withLeaves":false,"_withLeaves":"withLeaves"}]', kind: "OAK",
          heightCm: 0 }], undefined],
    ["a POST to an additional binding", "/v1/trees:get",
      [200, { treeId: "7", speciesName: "[null,null]", kind: "OAK", heightCm: 0 }], post('{"tree_id":"7"}')],
    ["a rule with response_body", "/v1/trees/7/species", [200, "[null,null]"], undefined],
    ["a failed call with an error detail", "/v1/beds/1/trees/404",
      [404, { code: 5, status: "NOT_FOUND", message: "no such tree",
          details: [{ "@type": "type.googleapis.com/google.protobuf.Duration", value: "3s" }] }], undefined],
    ["a client stream", "/v1/trees:add", [200, { treeCount: 2 }],
      post('{"treeId":"1"}\n{"treeId":"2"}\n', "application/x-ndjson")],
    ["a Connect call", "/garden.v1.Garden/GetTree",
      [200, { treeId: "7", speciesName: "[null,null]", kind: "OAK", heightCm: 0 }], post('{"treeId":"7"}')],
    ["an invalid request", "/v1/beds/1/trees/seven", [400, expect.objectContaining({ status: "INVALID_ARGUMENT" })],
      undefined],
  ],
)("grpc-js handlers over REST and JSON give %s a JSON response", async (_name, path, response, init) => {
  await using server = await startGarden(garden, {}, {}, loadGarden({ oneofs: true, enums: String }));
  const [httpStatus, body] = await send(server, path, init);
  expect([httpStatus, JSON.parse(body)]).toEqual(response);
});

test("grpc-js handlers over REST and JSON respond to a server stream with one JSON message per line", async () => {
  await using server = await startGarden(garden);
  const [httpStatus, body] = await send(server, "/v1/trees?pageSize=2");
  expect([httpStatus, body.trim().split("\n")]).toEqual([200, ['{"treeId":"1"}', '{"treeId":"2"}']]);
});

test("grpc-js handlers over REST and JSON set response headers with sendMetadata and with an error's metadata", async () => {
  await using server = await startGarden(garden);
  const response = await fetch(`http://127.0.0.1:${server.address.port}/v1/beds/1/trees/404`);
  const names = ["x-head", "x-why", "grpc-status", "grpc-status-details-bin"];
  expect(names.map((name) => response.headers.get(name))).toEqual(["1", "frost", null, null]);
});

/** A request that no encoder would write, with fields in descending order and an unknown field. */
const odd = Buffer.from([0x10, 0x07, 0x0a, 0x01, 0x61, 0xf8, 0x06, 0x01]);
const large = Buffer.concat([odd, Buffer.from([0x0a, 0x80, 0x80, 0x10]), Buffer.alloc(256 * 1024, "a")]);
const unchanged = (bytes: Buffer): Buffer => bytes;

function bytesOf(name: string): MethodDefinition<Buffer, Buffer> {
  const codec = { requestSerialize: unchanged, requestDeserialize: unchanged };
  const method: MethodDefinition<Buffer, Buffer> | undefined = loadGarden()[name];
  if (method === undefined) throw new TypeError(`no method ${name}`);
  return { ...method, ...codec, responseSerialize: unchanged, responseDeserialize: unchanged };
}

describe.each([
  { name: "a small message", bytes: odd },
  { name: "a large message", bytes: large },
])("$name", ({ bytes }) => {
  const echo = {
    getTree: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => callback(null, call.request),
  };
  const start = (): Promise<TestGarden> => startGarden(echo, {}, {}, { ...loadGarden(), GetTree: bytesOf("GetTree") });

  test("is passed unchanged over gRPC if the codec returns bytes", async () => {
    await using server = await start();
    const client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure());
    const { path, requestSerialize, responseDeserialize } = bytesOf("GetTree");
    const response = await new Promise<Buffer | undefined>((resolve, reject) =>
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, bytes, (error, value) =>
        error === null ? resolve(value) : reject(error),
      ),
    );
    client.close();
    expect(response?.equals(bytes)).toBe(true);
  });

  test.each([
    ["application/proto", bytes, (body: Buffer) => body],
    ["application/grpc-web+proto", encodeEnvelope(0, bytes), (body: Buffer) => decodeEnvelopes(body)[0]?.bytes],
  ])("is passed unchanged over %s if the codec returns bytes", async (type, body, read) => {
    await using server = await start();
    const init = { method: "POST", body: new Uint8Array(body), headers: { "content-type": type } };
    const response = await fetch(`http://127.0.0.1:${server.address.port}/garden.v1.Garden/GetTree`, init);
    expect(read(Buffer.from(await response.arrayBuffer()))?.equals(bytes)).toBe(true);
  });
});

const passOn: Interceptor = (next) => next;

/** Returns an interceptor that delays a stream's requests until the call is cancelled. */
const delayUntilCancelled =
  (onCall: () => void, onResponse: () => void): Interceptor =>
  (next) =>
  async (request) => {
    if (!request.stream) return await next(request);
    const message = afterAbort(request.signal, request.message);
    onCall();
    return await next({ ...request, message }).finally(onResponse);
  };

async function* afterAbort<M>(signal: AbortSignal, requests: AsyncIterable<M>): AsyncGenerator<M> {
  await once(signal, "abort");
  yield* requests;
}

async function respondWithIds(call: ServerDuplexStream<Message, Message>): Promise<void> {
  const requests: AsyncIterable<Message> = call;
  let ids = "";
  for await (const { treeId } of requests) ids += String(treeId);
  call.write({ speciesName: ids });
  call.end();
}

const refuseAll = (): never => {
  throw new ConnectError("who are you?", Code.Unauthenticated);
};
const getTree = { method: "GetTree", requests: [{ bedName: "beds/1", treeId: 7 }] } as const;

describe("the gateway in front of grpc-js handlers", () => {
  test("gives decoded messages to Connect interceptors", async () => {
    const seen: unknown[] = [];
    const interceptor: Interceptor = (next) => async (request) => {
      if (!request.stream) seen.push(Reflect.get(request.message, "treeId"));
      request.header.set("x-added", "1");
      return await next(request);
    };
    const handlers = {
      getTree: (call: ServerUnaryCall<Message, Message>, callback: Callback) =>
        callback(null, { speciesName: String(call.metadata.get("x-added")) }),
    };
    await using server = await startGarden(handlers, {}, { interceptors: [interceptor] });
    const { messages } = await callGarden(server.address.port, getTree);
    expect([seen, messages[0]?.["speciesName"]]).toEqual([[7n], "1"]);
  });

  test.each(["GetTree", "AddTrees", "ListTrees"] as const)(
    "gives %s the same outcome with and without Connect interceptors",
    async (method) => {
      await using intercepted = await startGarden(garden, {}, { interceptors: [passOn] });
      await using direct = await startGarden(garden);
      const call = { method, requests: [method === "ListTrees" ? { pageSize: 2 } : { treeId: 7 }] };
      expect(await callGarden(intercepted.address.port, call)).toEqual(await callGarden(direct.address.port, call));
    },
  );

  test("refuses a call if admit throws an error", async () => {
    await using server = await startGarden(garden, {}, { admit: refuseAll });
    expect(await callGarden(server.address.port, getTree)).toMatchObject({ code: status.UNAUTHENTICATED });
  });

  test("refuses requests larger than readMaxBytes", async () => {
    await using server = await startGarden(garden, {}, { readMaxBytes: 4 });
    expect(await callGarden(server.address.port, getTree)).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  });

  test("runs grpc-js interceptors that change messages and trailers", async () => {
    const order: string[] = [];
    const interceptor =
      (name: string): ServerInterceptor =>
      ({ path }, call) =>
        new ServerInterceptingCall(call, {
          start: (next) => {
            order.push(`${name} ${path}`);
            next({ onReceiveMessage: (message, pass) => pass({ ...message, bedName: `${message.bedName}/${name}` }) });
          },
          sendStatus: (end, next) => {
            const metadata = new Metadata();
            metadata.set(`x-${name}`, String(end.code));
            metadata.merge(end.metadata ?? new Metadata());
            next({ ...end, metadata });
          },
        });
    await using server = await startGarden(garden, { interceptors: [interceptor("a"), interceptor("b")] });
    const { messages, trailer } = await callGarden(server.address.port, getTree);
    expect([messages[0]?.["speciesName"], trailer]).toEqual(['["beds/1/a/b",null]', { "x-a": ["0"], "x-b": ["0"] }]);
    expect(order).toEqual(["b /garden.v1.Garden/GetTree", "a /garden.v1.Garden/GetTree"]);
  });

  test("does not run a handler if its call is cancelled in an interceptor", async () => {
    const called: string[] = [];
    const arrived = Promise.withResolvers<void>();
    const passedOn = Promise.withResolvers<void>();
    const listTrees = (call: ServerWritableStream<Message, Message>): void => {
      called.push(call.getPath());
      call.end();
    };
    const interceptors = [delayUntilCancelled(arrived.resolve, passedOn.resolve)];
    await using server = await startGarden({ listTrees }, {}, { interceptors });
    const onStart = (cancel: () => void): void => void arrived.promise.then(cancel);
    await callGarden(server.address.port, { method: "ListTrees", onStart });
    await passedOn.promise;
    await waitSomeTurns();
    expect(called).toEqual([]);
  });

  test("ends a stream with UNKNOWN if its handler writes after the end", async () => {
    const handlers = {
      listTrees: (call: ServerWritableStream<Message, Message>) => {
        // Some of 40 messages are pending at the end.
        for (let sent = 0; sent < 40; sent += 1) call.write({});
        call.end();
        call.write({});
      },
    };
    await using server = await startGarden(handlers);
    const options = { deadline: Date.now() + 5000 };
    const outcome = await callGarden(server.address.port, { method: "ListTrees", options });
    expect(outcome).toMatchObject({ code: status.UNKNOWN });
  });

  test("sends messages that a handler writes after its for await loop", async () => {
    const tradeTrees = (call: ServerDuplexStream<Message, Message>): void => void respondWithIds(call);
    await using server = await startGarden({ tradeTrees });
    const options = { deadline: Date.now() + 5000 };
    const call = { method: "TradeTrees", requests: [{ treeId: 1 }, { treeId: 2 }], options } as const;
    const outcome = await callGarden(server.address.port, call);
    expect(outcome).toMatchObject({ code: status.OK, messages: [{ speciesName: "12" }] });
  });

  test.each([
    ["a called-back", (_: unknown, callback: Callback) => callback(new Error("frozen"))],
    ["an emitted", (call: ServerUnaryCall<Message, Message>) => void call.emit("error", new Error("frozen"))],
  ])("sends the message of %s Error with exposeErrorMessages", async (_name, handler) => {
    await using server = await startGarden({ getTree: handler }, { exposeErrorMessages: true });
    expect(await callGarden(server.address.port, getTree)).toMatchObject({ code: status.UNKNOWN, details: "frozen" });
  });
});
