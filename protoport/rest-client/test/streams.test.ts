import { clone, create, createFileRegistry, type DescService, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { file_greenhouse_v1_greenhouse, GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createRestTransport } from "../src/index.ts";
import { EventSplitter } from "../src/response-stream.ts";
import { Catalog } from "../../testing/src/gen/catalog/v1/catalog_pb.ts";
import { FileService } from "../../testing/src/gen/files/v1/files_pb.ts";
import { http } from "../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { type Address, collect, startGreenhouse, within } from "@protoport/testing";
import { startCatalog } from "../../testing/src/gateway/catalog.ts";
import { startFiles } from "../../testing/src/gateway/files.ts";
import { respondWith, startRestServer } from "../../testing/src/gateway/rest-server.ts";

const clientOf = <Service extends DescService>(service: Service, { address }: { readonly address: Address }) =>
  createClient(service, createRestTransport({ baseUrl: `http://127.0.0.1:${address.port}` }));

async function watch(answer: (response: ServerResponse) => void): Promise<readonly unknown[]> {
  await using server = await startRestServer(answer);
  return await within(titlesOf(server.baseUrl), "the end of the stream");
}

async function titlesOf(baseUrl: string): Promise<readonly unknown[]> {
  const received: unknown[] = [];
  try {
    const client = createClient(Catalog, createRestTransport({ baseUrl }));
    for await (const { title } of client.watchBooks({ parent: "shelves/1" })) received.push(title);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    received.push(`${Code[error.code]}: ${error.rawMessage}`);
  }
  return received;
}

const json = "application/json";
const ndjson = "application/x-ndjson";
const events = "text/event-stream";

describe("a server stream", () => {
  test.each(
    // oxfmt-ignore
    [
      { name: "lines", type: ndjson, body: '{"title":"a"}\n\n{"title":"b"}\r\n{"title":"c"}', want: ["a", "b", "c"] },
      { name: "lines with the type application/jsonl", type: "application/jsonl; charset=utf-8",
        body: '{"title":"a"}\n', want: ["a"] },
      { name: "lines without a content type", type: "", body: '{"title":"a"}\n{"title":"b"}\n', want: ["a", "b"] },
      { name: "lines of plain text", type: "text/plain", body: '{"title":"a"}\n{"title":"b"}\n', want: ["a", "b"] },
      { name: "concatenated values with the type text/json", type: "text/json", body: '{"title":"a"}{"title":"b"}',
        want: ["a", "b"] },
      { name: "an array", type: json, body: ' [{"title":"a"},\n {"title":"}\\""}]\n', want: ["a", '}"'] },
      { name: "an empty array", type: json, body: "[]", want: [] },
      { name: "an empty body", type: ndjson, body: "", want: [] },
      { name: "lines that grpc-gateway wraps in result", type: json,
        body: '{"result":{"title":"a"}}\n{"result":{"title":"b"}}\n', want: ["a", "b"] },
      { name: "server-sent events", type: events,
        body: 'retry: 3\ndata: {"title":"a"}\n\n: beat\n\ndata: {"title":\ndata: "b"}\r\n\r\nevent: ping\ndata: 1\n\nevent: end\ndata: {}\n\ndata: {"title":"c"}\n\n',
        want: ["a", "b"] },
      { name: "lines with an error", type: ndjson, body: '{"title":"a"}\n{"@error":{"code":5,"message":"gone"}}\n',
        want: ["a", "NotFound: gone"] },
      { name: "an array with an error", type: json, body: '[{"title":"a"},{"@error":{"code":3,"message":"bad"}}]',
        want: ["a", "InvalidArgument: bad"] },
      { name: "grpc-gateway lines with an error", type: json,
        body: '{"result":{"title":"a"}}\n{"error":{"grpc_code":14,"http_code":503,"message":"later"}}\n',
        want: ["a", "Unavailable: later"] },
      { name: "events with an error", type: events,
        body: 'data: {"title":"a"}\n\nevent: error\ndata: {"error":7,"message":"no"}\n\n',
        want: ["a", "PermissionDenied: no"] },
      { name: "a truncated array", type: json, body: '[{"title":"a"}',
        want: ["a", expect.stringMatching(/^Internal: .*the array is not closed$/)] },
      { name: "a truncated line", type: ndjson, body: '{"title":"a"}\n{"title":',
        want: ["a", expect.stringMatching(/^Internal: the response is not a valid catalog\.v1\.Book/)] },
      { name: "an event that is not JSON", type: events, body: "data: x\n\n",
        want: [expect.stringMatching(/^Internal: /)] },
      ...["text/html", "application/xhtml+xml", "text/event-streams"].map((type) => ({
        name: type,
        type,
        body: "<p>",
        want: [`Unknown: the response must be a stream of JSON or events, got ${type}`],
      })),
    ],
  )("sent as $name yields its messages or an error", async ({ type, body, want }) => {
    expect(await watch((response) => response.writeHead(200, { "content-type": type }).end(body))).toEqual(want);
  });

  test("rejects with its error if it fails before its first message", async () =>
    expect(await watch((response) => respondWith(response, 404, { code: 5, message: "no shelf" }))).toEqual([
      "NotFound: no shelf",
    ]));

  test.each([ndjson, json, events])("is aborted if a message in %s exceeds the size limit", async (type) => {
    const [error] = await watch((response) => {
      response.writeHead(200, { "content-type": type }).write(type === events ? "data: " : '{"title":"');
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.on("drain", more);
      more();
    });
    expect(error).toMatch(/^ResourceExhausted: /);
  });

  test.each([
    { name: "HTML", status: 200, type: "text/html", begin: "<p>" },
    { name: "a redirect", status: 302, type: json, begin: "{" },
    { name: "a long error", status: 500, type: json, begin: "x".repeat(100_000) },
    { name: "data after the end", status: 200, type: events, begin: "event: end\ndata: {}\n\n" },
  ])("closes its connection if $name is received", async ({ status, type, begin }) => {
    await using server = await startRestServer((response) => {
      response.writeHead(status, { "content-type": type }).write(begin);
    });
    await within(titlesOf(server.baseUrl), "the end of the stream");
    await expect.poll(() => server.open()).toBe(0);
  });

  test("fails with Unavailable when its connection is lost", async () => {
    const received = await watch((response) => {
      response
        .writeHead(200, { "content-type": ndjson })
        .write('{"title":"a"}\n', () => setImmediate(() => response.destroy()));
    });
    expect(received).toEqual(["a", "Unavailable: the response is incomplete"]);
  });

  test("delivers each message when it arrives, until its signal aborts", async () => {
    const responses: ServerResponse[] = [];
    await using server = await startRestServer((response) => {
      responses.push(response.writeHead(200, { "content-type": ndjson }));
      response.write('{"title":"a"}\n');
    });
    const controller = new AbortController();
    const client = createClient(Catalog, createRestTransport({ baseUrl: server.baseUrl }));
    const books = client.watchBooks({ parent: "shelves/1" }, { signal: controller.signal })[Symbol.asyncIterator]();
    expect(await within(books.next(), "the first")).toMatchObject({ value: { title: "a" } });
    responses[0]?.write('{"title":"b"}\n');
    expect(await within(books.next(), "the second")).toMatchObject({ value: { title: "b" } });
    controller.abort();
    await expect(within(books.next(), "the end")).rejects.toMatchObject({ code: Code.Canceled });
    await expect.poll(() => server.open()).toBe(0);
  });

  test("is read from this project's gateway", async () => {
    await using gateway = await startCatalog();
    const baseUrl = `http://127.0.0.1:${gateway.address.port}`;
    const client = clientOf(Catalog, gateway);
    for (const title of ["x", "y"]) await client.createBook({ parent: "shelves/1", bookId: title, book: { title } });
    expect(await titlesOf(baseUrl)).toEqual(["x", "y"]);
    const page = await client.listBooks({ parent: "shelves/1", pageSize: 1 });
    const next = await client.listBooks({ parent: "shelves/1", pageSize: 1, pageToken: page.nextPageToken });
    expect([page.books, next.books]).toMatchObject([[{ title: "x" }], [{ title: "y" }]]);
  });
});

/** The greenhouse with annotations for client streams, and the same rules for its gateway. */
const streamRules = {
  RecordReadings: create(HttpRuleSchema, { pattern: { case: "post", value: "/sensors/{sensor}/readings" }, body: "*" }),
  ControlClimate: create(HttpRuleSchema, { pattern: { case: "put", value: "/climate" }, body: "degrees_celsius" }),
};

function annotatedGreenhouse(): DescService {
  const annotated = clone(FileDescriptorProtoSchema, file_greenhouse_v1_greenhouse.proto);
  for (const method of annotated.service[0]?.method ?? []) {
    const rule = Object.entries(streamRules).find(([name]) => name === method.name)?.[1];
    if (rule === undefined) continue;
    method.options ??= create(MethodOptionsSchema);
    setExtension(method.options, http, rule);
  }
  const files = [
    ...file_greenhouse_v1_greenhouse.dependencies.flatMap(({ dependencies, proto }) => [
      ...dependencies.flatMap((inner) => [...inner.dependencies.map((deep) => deep.proto), inner.proto]),
      proto,
    ]),
    annotated,
  ];
  const service = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [...new Map(files.map((known) => [known.name, known])).values()] }),
  ).getService("greenhouse.v1.GreenhouseService");
  if (service === undefined) throw new Error("the greenhouse is missing");
  return service;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same definition, with annotations
const greenhouse = annotatedGreenhouse() as typeof GreenhouseService;
const rules = Object.entries(streamRules).map(([name, rule]) => ({
  ...rule,
  selector: `greenhouse.v1.GreenhouseService.${name}`,
}));

async function* each<Value>(...values: readonly Value[]): AsyncGenerator<Value> {
  yield* values;
}

const file = (text: string, contentType = "") => ({ contentType, data: Buffer.from(text) });

test("a client stream is sent with all its messages, and its response is returned", async () => {
  const received: string[] = [];
  await using served = await startGreenhouse(
    {
      async recordReadings(readings) {
        for await (const { sensor, degreesCelsius } of readings) received.push(`${sensor}:${degreesCelsius}`);
        return { count: received.length };
      },
      async *controlClimate(readings) {
        for await (const { degreesCelsius } of readings) yield { heatWatts: degreesCelsius };
      },
    },
    { rest: { rules } },
  );
  const client = clientOf(greenhouse, served);
  const readings = each({ sensor: "palm/1", degreesCelsius: 21 }, {}, { degreesCelsius: -1.5 });
  expect([(await client.recordReadings(readings)).count, received]).toEqual([3, ["palm/1:21", ":0", ":-1.5"]]);
  const watts: number[] = [];
  for await (const { heatWatts } of client.controlClimate(each({ degreesCelsius: 1 }, {}, { degreesCelsius: 3 })))
    watts.push(heatWatts);
  expect([watts, await collect(client.controlClimate(each()))]).toEqual([[1, 0, 3], []]);
});

test.each([
  ["no message sets the path", [], "the path needs sensor, but the stream has no message"],
  ["the first message does not set the path", [{}], expect.stringContaining("sensor: must be set and not empty")],
  [
    "a later message sets the path",
    [{ sensor: "a" }, { sensor: "a" }],
    expect.stringContaining("sensor: may be set only in the first message of a stream"),
  ],
])("a client stream is refused if %s in a RecordReadings call", async (_name, readings, want) => {
  let isComplete = false;
  await using served = await startGreenhouse(
    {
      async recordReadings(all) {
        await collect(all);
        isComplete = true;
        return {};
      },
    },
    { rest: { rules } },
  );
  const call = clientOf(greenhouse, served).recordReadings(each(...readings));
  await expect(within(call, "the refusal")).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage: want });
  expect(isComplete).toBe(false);
});

test("a client stream is refused if a later message sets a field of the query", async () => {
  await using served = await startGreenhouse({}, { rest: { rules } });
  const call = collect(clientOf(greenhouse, served).controlClimate(each({ degreesCelsius: 1 }, { sensor: "x" })));
  const rawMessage = expect.stringContaining("sensor: may be set only in the first");
  await expect(within(call, "the refusal")).rejects.toMatchObject({ code: Code.InvalidArgument, rawMessage });
});

test('a client stream sends "Accept: application/json" for a single response message', async () => {
  await using server = await startRestServer((response) => respondWith(response, 200, { count: 1 }));
  const client = createClient(greenhouse, createRestTransport({ baseUrl: server.baseUrl }));
  expect((await client.recordReadings(each({ sensor: "a" }))).count).toBe(1);
  expect(server.seen).toMatchObject([{ header: { accept: "application/json" } }]);
});

test("a client stream uploads and downloads raw bodies in several messages", async () => {
  await using files = await startFiles("listening", {
    async upload(pieces) {
      let [name, contentType, length] = ["", "", 0];
      for await (const piece of pieces) {
        name ||= piece.name;
        contentType ||= piece.file?.contentType ?? "";
        length += piece.file?.data.byteLength ?? 0;
      }
      return { name, contentType, length: BigInt(length) };
    },
    async *download({ name }) {
      yield { contentType: "text/x", data: Buffer.from(name) };
      yield { data: Buffer.from("!") };
    },
    async *pipe(pieces) {
      for await (const { contentType, data } of pieces) yield { contentType, data };
    },
  });
  const client = clientOf(FileService, files);
  const answer = await client.upload(each({ name: "a b", file: file("12", "text/y") }, { file: file("345") }));
  expect(answer).toMatchObject({ name: "a b", contentType: "text/y", length: 5n });
  const down = await collect(client.download({ name: "n" }));
  expect([down[0]?.contentType, Buffer.concat(down.map(({ data }) => data)).toString()]).toEqual(["text/x", "n!"]);
  const piped = await collect(client.pipe(each(file("x", "text/z"), file("y"))));
  expect(Buffer.concat(piped.map(({ data }) => data)).toString()).toBe("xy");
  const typed = client.upload(each({ name: "a", file: file("1") }, { file: file("2", "text/y") }));
  await expect(typed).rejects.toMatchObject({ code: Code.InvalidArgument });
});

test("a download sets content_type only in its first message", async () => {
  let send: (() => void) | undefined;
  await using server = await startRestServer((response) => {
    response.writeHead(200, { "content-type": "text/x" }).write("a");
    send = () => response.end("b");
  });
  const client = createClient(FileService, createRestTransport({ baseUrl: server.baseUrl }));
  const types: string[] = [];
  for await (const { contentType } of client.download({ name: "n" })) {
    types.push(contentType);
    send?.();
  }
  expect(types).toEqual(["text/x", ""]);
});

test("a call fails with the error that the client's message stream throws", async () => {
  await using files = await startFiles("listening", {
    async *pipe(pieces) {
      for await (const { data } of pieces) yield { data };
    },
  });
  const client = clientOf(FileService, files);
  const answered = Promise.withResolvers<unknown>();
  async function* halves() {
    yield file("x");
    await answered.promise;
    throw new ConnectError("mine", Code.Aborted);
  }
  const received: string[] = [];
  const read = async (): Promise<void> => {
    for await (const { data } of client.pipe(halves())) answered.resolve(received.push(Buffer.from(data).toString()));
  };
  await expect(within(read(), "the end")).rejects.toMatchObject({ code: Code.Aborted, rawMessage: "mine" });
  expect(received).toEqual(["x"]);
});

test.each([
  { count: 0, code: Code.InvalidArgument, ended: 0 },
  { count: 1, code: Code.Unavailable, ended: 0 },
  { count: 2, code: Code.InvalidArgument, ended: 1 },
])("for $count input message(s), a server stream calls return() $ended time(s)", async ({ count, code, ended }) => {
  const transport = createRestTransport({ baseUrl: "http://127.0.0.1:1" });
  let [remaining, ends] = [count, 0];
  const end = { done: true, value: undefined } as const;
  const messages = {
    [Symbol.asyncIterator]: () => ({
      next: async () => (remaining-- > 0 ? { done: false, value: { parent: "shelves/1" } } : end),
      return: async () => {
        await new Promise(setImmediate);
        ends += 1;
        return end;
      },
    }),
  };
  const call = transport.stream(Catalog.method.watchBooks, undefined, undefined, undefined, messages);
  await expect(call).rejects.toMatchObject({ code });
  expect(ends).toBe(ended);
});

test("EventSplitter reads the expected events however their bytes are split", () => {
  const text =
    "\ufeffdata: ä\r\ndata\rdata:b\n\n:c\nevent: x\r\rid: 1\ndata: 1\n\nevent: y\ndata: {}\r\n\r\ndata: 2\n\ndata: cut";
  const bytes = Buffer.from(text);
  const whole = [
    { name: "message", data: "ä\n\nb" },
    { name: "message", data: "1" },
    { name: "y", data: "{}" },
    { name: "message", data: "2" },
  ];
  for (let at = 0; at <= bytes.byteLength; at++) {
    const splitter = new EventSplitter(100);
    const received: unknown[] = [];
    for (const piece of [bytes.subarray(0, at), bytes.subarray(at)]) {
      splitter.add(piece);
      for (let event = splitter.take(); event !== undefined; event = splitter.take()) received.push(event);
      received.push(...[splitter.take()].filter((event) => event !== undefined));
    }
    expect([at, received]).toEqual([at, whole]);
  }
});

test("EventSplitter applies its limit only to an event's data", () => {
  const splitter = new EventSplitter(10);
  splitter.add(Buffer.from(`${"id: 12345\n".repeat(5)}data: 1\n\n`));
  expect(splitter.take()).toEqual({ name: "message", data: "1" });
  splitter.add(Buffer.from("data: 12\ndata: 34\n\n".repeat(2)));
  for (let i = 0; i < 2; i++) expect(splitter.take()).toEqual({ name: "message", data: "12\n34" });
  splitter.add(Buffer.from("data: 1\n".repeat(5)));
  expect(() => splitter.take()).toThrow("the message is larger than 10 bytes");
});
