import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Reading } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../src/index.ts";
import { LegacySink } from "../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
// oxfmt-ignore
import { exchange, exchangeFetch, type Field, fieldValue, type HttpResponse, onFirstWay, openUpload, reasonOf, restWays,
  startGreenhouse, type TestGreenhouse, type Upload, within } from "@protoport/testing";

// Client streams over REST send JSON lines in a request's body.

type Rules = NonNullable<NonNullable<GatewayOptions["rest"]>["rules"]>;
const service = "greenhouse.v1.GreenhouseService";
// oxfmt-ignore
const rules: Rules = [
  { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*",
    additionalBindings: [{ pattern: { case: "post", value: "/sensors/{sensor}/readings" }, body: "*" },
      { pattern: { case: "put", value: "/sensors/{sensor}/degrees" }, body: "degrees_celsius" },
      { pattern: { case: "put", value: "/degrees" }, body: "degrees_celsius" }] },
  { selector: `${service}.ControlClimate`, pattern: { case: "post", value: "/climate" }, body: "*" },
];

const ndjson: Field = ["content-type", "application/x-ndjson"];
const unchanged = async (bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(bytes);

async function recordReadings(readings: AsyncIterable<Reading>): Promise<{ count: number }> {
  let count = 0;
  for await (const _ of readings) count += 1;
  return { count };
}

async function* controlClimate(readings: AsyncIterable<Reading>): AsyncGenerator<object> {
  for await (const { sensor } of readings) yield { sensor };
}

function recorder() {
  const received: string[] = [];
  const record = async (readings: AsyncIterable<Reading>): Promise<{ count: number }> => {
    for await (const { sensor, degreesCelsius } of readings) received.push(`${sensor}:${degreesCelsius}`);
    return { count: received.length };
  };
  return { received, record };
}

/** Waits until the server accepts no more from an upload, and returns how many bytes remain. */
async function waitingBytesOf(upload: Upload): Promise<number> {
  let waiting = -1;
  const hasStopped = (): boolean => {
    const before = waiting;
    waiting = upload.waitingBytes;
    return waiting === before;
  };
  await expect.poll(hasStopped, { interval: 50 }).toBe(true);
  return waiting;
}

type Implementation = Parameters<typeof startGreenhouse>[0];

describe.each(restWays)("a client stream on REST over $name", (way) => {
  const { version, http2 } = way;
  const start = (implementation: Implementation, options: Partial<GatewayOptions> = {}): Promise<TestGreenhouse> =>
    startGreenhouse(implementation, { rest: { rules, ...options.rest }, ...options }, { http2 });
  const post = async (
    { address, gateway }: TestGreenhouse,
    path: string,
    body: string | Uint8Array,
    header: readonly Field[] = [ndjson],
  ): Promise<HttpResponse> => {
    const httpMethod = path.endsWith("readings") || path.startsWith("/climate") ? "POST" : "PUT";
    const request = { httpMethod, path, header, body: Buffer.from(body) };
    if (version === "fetch") return await exchangeFetch(gateway.fetch, request);
    return await exchange(address, version, request);
  };
  const open = (greenhouse: TestGreenhouse, path = "/readings", header: readonly Field[] = [ndjson]): Promise<Upload> =>
    openUpload(greenhouse, version, ["POST", path], header);

  test.each([
    ["one message per line", '{"sensor":"a"}\n{"sensor":"b"}\n', ["a:0", "b:0"]],
    ["lines without a final line feed", '{"sensor":"a"}\n{"sensor":"b"}', ["a:0", "b:0"]],
    ["lines with CR LF", '{"sensor":"a"}\r\n{"sensor":"b"}\r\n', ["a:0", "b:0"]],
    ["messages between blank lines", '\n \n{"sensor":"a"}\n\t\r\n\n{"sensor":"b"}\n\n  ', ["a:0", "b:0"]],
    ["non-ASCII text", '{"sensor":"é☂𝄞"}\n', ["é☂𝄞:0"]],
    ["zero bytes", "", []],
    ["only blank lines", "\n\r\n ", []],
  ])("accepts %s as its body", async (_name, body, want) => {
    const { received, record } = recorder();
    await using greenhouse = await start({ recordReadings: record });
    const response = await post(greenhouse, "/readings", body);
    const expected = [200, want.length === 0 ? "{}" : `{"count":${want.length}}`];
    expect([[response.httpStatus, response.body.toString()], received]).toEqual([expected, want]);
    // The result does not depend on how the body is split, even into single octets.
    received.length = 0;
    using upload = await open(greenhouse);
    for (const octet of Buffer.from(body)) upload.write(Buffer.of(octet));
    upload.end();
    expect([(await upload.readResponse()).httpStatus, received]).toEqual([200, want]);
  });

  test("ignores an invalid query if the handler reads no message", async () => {
    await using greenhouse = await start({ recordReadings: async () => ({}) });
    const response = await post(greenhouse, "/degrees?nope=1", "");
    expect([response.httpStatus, response.body.toString()]).toEqual([200, "{}"]);
  });

  test.each(
    onFirstWay(way, [
      { path: "/sensors/s/readings", body: '{"degreesCelsius":1}\n{"degreesCelsius":2}', want: ["s:1", ":2"] },
      { path: "/sensors/s/degrees", body: "1\n2\n", want: ["s:1", ":2"] },
      { path: "/degrees?sensor=s", body: "1\n2\n", want: ["s:1", ":2"] },
    ]),
  )("sets the fields in the URL $path only in its first message", async ({ path, body, want }) => {
    const { received, record } = recorder();
    await using greenhouse = await start({ recordReadings: record });
    expect([(await post(greenhouse, path, body)).httpStatus, received]).toEqual([200, want]);
  });

  test.each(
    // oxfmt-ignore
    onFirstWay(way, [
      { name: "is not JSON", path: "/readings", body: "{}\n\n{}\nx\n{}",
        want: /^line 4: not valid JSON: expected an object, got "x"/ },
      { name: "is not JSON (blank lines count)", path: "/readings", body: "\n\n{}\n\n\n\nx\n",
        want: /^line 7: not valid JSON: expected an object, got "x"/ },
      { name: "contains two values", path: "/readings", body: "{}\n{} {}\n",
        want: /^line 2: not valid JSON: expected the end of the text, got "\{"/ },
      { name: "contains a truncated value", path: "/readings", body: '{"sensor":\n"a"}',
        want: /^line 1: sensor: must be a string/ },
      { name: "begins with a byte order mark", path: "/readings", body: "\ufeff{}\n", want: /^line 1: not valid JSON/ },
      { name: "has an unknown field", path: "/readings", body: '{"x":1}', want: /^line 1: .*"x"/ },
      { name: "is not UTF-8", path: "/readings", body: Buffer.of(0x22, 0xff, 0x22), want: /^line 1: .*UTF-8/ },
      { name: "is an array", path: "/readings", body: '[{"sensor":"a"}]',
        want: /^line 1: must be an object, got "\["/ },
      { name: "repeats the path", path: "/sensors/s/readings", body: '{"sensor":"s"}\n{}',
        want: /^line 1: sensor: is already set by the path/ },
      { name: "sets a path field in a later message", path: "/sensors/s/readings", body: '{}\n{"sensor":"t"}',
        want: /^line 2: sensor: is already set by the path/ },
      { name: "is missing in an empty body", path: "/sensors/s/readings", body: "",
        want: /^the stream has no message/ },
      { name: "is blank", path: "/sensors/s/readings", body: "\n\n", want: /^the stream has no message/ },
      { name: "is missing in a request with a query", path: "/degrees?sensor=s", body: "\n",
        want: /^the stream has no message/ },
      { name: "is sent with an invalid query", path: "/degrees?x=s", body: "1\n", want: /^line 1: .*"x"/ },
      { name: "is above the limit", path: "/readings", body: `{}\n"${"x".repeat(1000)}"\n`,
        want: /^line 2: the message is lar/ },
    ]),
  )("is refused if a line $name, with the expected message", async ({ path, body, want }) => {
    await using greenhouse = await start({ recordReadings }, { readMaxBytes: 1000 });
    const response = await post(greenhouse, path, body);
    const { message } = JSON.parse(response.body.toString());
    expect(message).toMatch(want);
    expect(response.httpStatus).toBe(String(message).includes("larger") ? 413 : 400);
  });

  test("is refused if a line repeats the path, even with sameValueAsPath", async () => {
    const rest = { rules, service: () => ({ sameValueAsPath: true }) };
    await using greenhouse = await start({ recordReadings }, { rest });
    const response = await post(greenhouse, "/sensors/s/readings", '{"sensor":"s"}\n');
    const message = "line 1: sensor: is already set by the path; to accept it, set the server option lenient";
    expect(JSON.parse(response.body.toString())).toMatchObject({ message });
  });

  test.each(
    onFirstWay(way, [
      { type: "application/x-ndjson", status: 200 },
      { type: "application/jsonl; charset=utf-8", status: 200 },
      { type: 'Application/X-NDJSON; charset="UTF-8"; a=b', status: 200 },
      { type: undefined, status: 200 },
      { type: "application/json", status: 415 },
      { type: "application/x-ndjson; charset=latin1", status: 415 },
      { type: "text/plain", status: 415 },
      { type: "application/jsonl\t+json", status: 415 },
    ]),
  )("with the content type $type gets a $status response", async ({ type, status }) => {
    await using greenhouse = await start({ recordReadings });
    const header: Field[] = type === undefined ? [] : [["content-type", type]];
    expect((await post(greenhouse, "/readings", "{}\n", header)).httpStatus).toBe(status);
    expect((await post(greenhouse, "/climate", "{}\n", header)).httpStatus).toBe(status === 200 ? 501 : status);
  });

  test("with curl's default content type is refused, naming the accepted types", async () => {
    await using greenhouse = await start({ recordReadings });
    const form = "application/x-www-form-urlencoded";
    const answer = await post(greenhouse, "/readings", "{}\n", [["content-type", form]]);
    const message = `the content type must be application/x-ndjson or application/jsonl in UTF-8, got "${form}"`;
    expect(JSON.parse(answer.body.toString())).toMatchObject({ message });
  });

  test("is refused with a custom content coding that has no streaming decoder", async () => {
    const own = { name: "own", compress: unchanged, decompress: unchanged };
    await using greenhouse = await start({ recordReadings }, { acceptCompression: [own] });
    const response = await post(greenhouse, "/readings", "{}\n", [ndjson, ["content-encoding", "own"]]);
    expect([response.httpStatus, fieldValue(response.header, "accept-encoding")]).toEqual([415, "identity"]);
  });

  test("is accepted as application/json with streamInResults", async () => {
    const rest = { rules, service: () => ({ streamInResults: true }) };
    await using greenhouse = await start({ recordReadings }, { rest });
    const response = await post(greenhouse, "/readings", "{}\n{}\n", [["content-type", "application/json"]]);
    expect(response.body.toString()).toBe('{"count":2}');
  });

  test("gets the header fields and error that its handler sets", async () => {
    await using greenhouse = await start({
      recordReadings: async (readings, { responseHeader, responseTrailer }) => {
        responseHeader.set("x-header", "1");
        responseTrailer.set("x-trailer", "2");
        for await (const { sensor } of readings) if (sensor === "bad") throw new ConnectError("bad", Code.NotFound);
        return { count: 1 };
      },
    });
    for (const sensor of ["good", "bad"]) {
      const { header, httpStatus } = await post(greenhouse, "/readings", `{"sensor":"${sensor}"}\n`);
      const fields = ["content-type", "x-header", "x-trailer"].map((name) => fieldValue(header, name));
      expect([httpStatus, ...fields]).toEqual([sensor === "good" ? 200 : 404, "application/json", "1", "2"]);
    }
  });

  test("is accepted at any length if each message is within the limit", async () => {
    await using greenhouse = await start({ recordReadings }, { readMaxBytes: 100 });
    const body = '{"sensor":"0123456789"}\n'.repeat(10_000);
    expect((await post(greenhouse, "/readings", body)).body.toString()).toBe('{"count":10000}');
  });

  test.each([
    { coding: "gzip", encode: gzipSync },
    { coding: "br", encode: brotliCompressSync },
    { coding: "zstd", encode: zstdCompressSync },
  ])("is decompressed from $coding as it arrives", async ({ coding, encode }) => {
    const { received, record } = recorder();
    await using greenhouse = await start({ recordReadings: record });
    const encoded = encode(Buffer.from('{"sensor":"a"}\n{"sensor":"b"}\n'));
    const header: Field[] = [ndjson, ["content-encoding", coding]];
    using upload = await open(greenhouse, "/readings", header);
    for (const octet of encoded) upload.write(Buffer.of(octet));
    upload.end();
    expect([(await upload.readResponse()).body.toString(), received]).toEqual(['{"count":2}', ["a:0", "b:0"]]);
    for (const bad of [encoded.subarray(0, -1), Buffer.concat([encoded, Buffer.from("more")]), Buffer.from("no")]) {
      const response = await post(greenhouse, "/readings", bad, header);
      const want = [400, `the body is not valid ${coding}`];
      expect([response.httpStatus, JSON.parse(response.body.toString()).message]).toEqual(want);
    }
    expect((await post(greenhouse, "/readings", "", header)).httpStatus).toBe(200);
  });

  test.each([
    { coding: "identity", encode: (line: string) => Buffer.from(line) },
    { coding: "gzip", encode: (line: string) => gzipSync(line, { finishFlush: constants.Z_SYNC_FLUSH }) },
  ])("sent in $coding gets an early response if the handler stops reading", async ({ coding, encode }) => {
    await using greenhouse = await start({
      recordReadings: async (readings) => {
        for await (const { sensor } of readings) if (sensor === "last") break;
        return { count: 1 };
      },
    });
    using upload = await open(greenhouse, "/readings", [ndjson, ["content-encoding", coding]]);
    upload.write(encode('{"sensor":"first"}\n{"sensor":"last"}\n'));
    expect((await upload.readResponse()).body.toString()).toBe('{"count":1}');
  });

  test("is refused if decompression makes it more than 1032 times larger", async () => {
    await using greenhouse = await start({ recordReadings }, { readMaxBytes: 1000 });
    const bomb = zstdCompressSync(Buffer.alloc(16 * 1024 * 1024, "\n"));
    const response = await post(greenhouse, "/readings", bomb, [ndjson, ["content-encoding", "zstd"]]);
    expect([response.httpStatus, response.body.toString()]).toEqual([413, expect.stringContaining("1032 times")]);
  });

  test("fails with 504 at its deadline", async () => {
    let reason: Promise<unknown> | undefined;
    const end = Promise.withResolvers<unknown>();
    await using greenhouse = await start({
      recordReadings: async (readings, { signal }) => {
        reason = reasonOf(signal);
        await recordReadings(readings).catch(end.resolve);
        return {};
      },
    });
    using upload = await open(greenhouse, "/readings", [ndjson, ["x-server-timeout", "0.2"]]);
    upload.write("{}\n{");
    expect((await upload.readResponse()).httpStatus).toBe(504);
    await expect(reason).resolves.toMatchObject({ code: Code.DeadlineExceeded });
    // The handler must not wait forever for the rest, and must not treat the received messages as complete.
    expect(await within(end.promise, "the end of the messages")).toBeInstanceOf(Error);
  });

  test.each([
    { how: "disconnects", reset: false },
    { how: "resets the stream", reset: true },
  ])("fails in its handler if the client $how after any byte", async ({ reset }) => {
    const text = '{"sensor":"a"}\n{}\n';
    let read = -1;
    const ends: unknown[] = [];
    await using greenhouse = await start({
      recordReadings: async (readings) => {
        read = 0;
        try {
          for await (const _ of readings) read += 1;
        } catch (error) {
          ends.push(error);
        }
        return {};
      },
    });
    for (let sent = 0; sent <= text.length; sent += 1) {
      read = -1;
      {
        using upload = await open(greenhouse);
        const before = text.slice(0, sent);
        if (sent > 0) upload.write(before);
        await expect.poll(() => read, { interval: 1 }).toBe(before.split("\n").length - 1);
        if (reset) upload.reset();
      }
      const { httpStatus, error } = await greenhouse.completed(sent + 1);
      // On HTTP/1.1 a body that ends early is malformed, and its client may still read the error.
      const want = version === "1.1" && !reset ? [400, Code.InvalidArgument] : [0, Code.Canceled];
      expect([httpStatus, error?.code]).toEqual(want);
    }
    await expect.poll(() => ends.length).toBe(text.length + 1);
    expect(ends.every((error) => error instanceof Error)).toBe(true);
  });

  test("is refused as soon as a line exceeds the limit", async () => {
    await using greenhouse = await start({ recordReadings }, { readMaxBytes: 64 * 1024 });
    using upload = await open(greenhouse);
    upload.write(`{}\n"${"x".repeat(70_000)}`);
    const response = await upload.readResponse();
    const want = "line 2: the message is larger than 65536 bytes; to accept it, set the server option readMaxBytes";
    expect([response.httpStatus, JSON.parse(response.body.toString()).message]).toEqual([413, want]);
  });

  test("applies backpressure while its handler does not read", async () => {
    const go = Promise.withResolvers<void>();
    await using greenhouse = await start({
      recordReadings: async (readings) => (await go.promise, await recordReadings(readings)),
    });
    using upload = await open(greenhouse);
    const line = `{"sensor":"${"x".repeat(64 * 1024)}"}\n`;
    let [lines, waiting] = [0, 0];
    // The system buffers a configured amount. The rest is not sent by the client.
    while (waiting < 4 * 1024 * 1024 && lines < 2048) {
      for (const last = lines + 256; lines < last; lines += 1) upload.write(line);
      waiting = await waitingBytesOf(upload);
    }
    upload.end();
    expect(waiting).toBeGreaterThanOrEqual(4 * 1024 * 1024);
    go.resolve();
    expect((await upload.readResponse()).body.toString()).toBe(`{"count":${lines}}`);
  });

  test("that is bidirectional gets an error line for an invalid line", async () => {
    await using greenhouse = await start({ controlClimate });
    using upload = await open(greenhouse, "/climate");
    upload.write('{"sensor":"a"}\n');
    await within(upload.readUntil('{"sensor":"a"}'), "the first answer");
    upload.write("{}\nx\n");
    // Both directions are still open.
    const rest = await within(upload.readUntil("@error"), "the error");
    expect(rest).toMatch(/^[^]*\{\}\n[^]*\{"@error":\{"code":3,.*"line 3: not valid JSON/);
  });

  test.each([
    ["application/x-ndjson", '{"sensor":"a"}\n{"sensor":"b"}\n'],
    ["application/json", '[{"sensor":"a"},\n{"sensor":"b"}]'],
    ["text/event-stream", 'retry: 3000\ndata: {"sensor":"a"}\n\ndata: {"sensor":"b"}\n\nevent: end\ndata: {}\n\n'],
  ])("that is bidirectional gets messages as %s if Accept contains this type", async (accept, want) => {
    await using greenhouse = await start({ controlClimate });
    const response = await post(greenhouse, "/climate", '{"sensor":"a"}\n{"sensor":"b"}', [ndjson, ["accept", accept]]);
    expect(response.body.toString()).toBe(want);
  });
});

function check(rule: Rules[number]): () => void {
  return () => createGateway({ routes: (router) => router.service(LegacySink, {}), rest: { rules: [rule] } });
}

describe("an HTTP rule for a client stream", () => {
  const selector = "kitchensink.v1.LegacySink.KeepAll";

  test.each<[name: string, rule: Rules[number], problem: string]>(
    // oxfmt-ignore
    [
      ["it has no body", { selector, pattern: { case: "get", value: "/all" } },
        "a client-streaming RPC must have a body"],
      ["its path contains a required field", { selector, pattern: { case: "post", value: "/all/{name}" }, body: "*" },
        'only the first message of the stream can set the required field "name"'],
      ["its body excludes a required field", { selector, pattern: { case: "post", value: "/all" }, body: "child" },
        'only the first message of the stream can set the required field "name"'],
      ["its path contains a nested required field",
        { selector, pattern: { case: "post", value: "/all/{child.name}" }, body: "*" },
        'only the first message of the stream can set the required field "name"'],
    ],
  )("is refused by createGateway() if %s (proto2)", (_name, rule, problem) => expect(check(rule)).toThrow(problem));

  test("is accepted by createGateway() if its path has only optional fields", () =>
    expect(check({ selector, pattern: { case: "post", value: "/all/{number}" }, body: "*" })).not.toThrow());
});
