import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Admit, GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { type Field, fieldValue, headerOfListBytes, type HttpRequest, nextEvent, openGreenhouse, openHttp1, shared,
  startGreenhouse, waterBedProcedure, within } from "@protoport/testing";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";
const jsonHead = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;

function water(header: readonly Field[], body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json, ...header], body: Buffer.from(body) };
}

const needsKey: Admit = ({ header }) => {
  if (header.get("x-key") !== "k") throw new ConnectError("no key", Code.Unauthenticated);
};

describe("a client that waits for 100 Continue", () => {
  const greenhouse = shared(() => startGreenhouse({ waterBed: () => ({}) }, { admit: needsKey, readMaxBytes: 100 }));
  test("gets 100 Continue once its request is admitted", async () => {
    using connection = await openHttp1(greenhouse.address);
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 12\r\n`;
    connection.write(`${head}expect: 100-continue\r\n\r\n`);
    const [interim] = await within(once(connection.socket, "data"), "100 (Continue)");
    expect(String(interim)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    connection.write('{"note":"n"}');
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, interim: [100] });
  });

  test("keeps its connection if the response precedes the body", async () => {
    using connection = await openHttp1(greenhouse.address);
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 12\r\n`;
    connection.write(`${head}connect-timeout-ms: 10\r\nexpect: 100-continue\r\n\r\n`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 504, interim: [100] });
    connection.write('{"note":"n"}');
    connection.request(water([["x-key", "k"]], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test.each([
    [401, "a missing credential", path, [], undefined, undefined, undefined],
    [404, "an unknown path", "/nothing", ["x-key: k"], undefined, undefined, undefined],
    [401, "a missing credential at an unknown path", "/nothing", [], undefined, undefined, undefined],
    [413, "a body over the limit", path, ["x-key: k"], 101, undefined, undefined],
    [415, "an unsupported content coding", path, ["x-key: k", "content-encoding: x"], undefined, undefined, undefined],
    [415, "an unsupported content type", path, ["x-key: k"], undefined, "text/plain", undefined],
    [400, "an unexpected body", "/sensors/s/reading", ["x-key: k"], undefined, undefined, "GET"],
  ])(
    "gets %s for %s instead of 100 Continue",
    async (httpStatus, _name, target, header, length = 12, type = "application/json", httpMethod = "POST") => {
      using connection = await openHttp1(greenhouse.address);
      const head = [`${httpMethod} ${target} HTTP/1.1`, "host: x", `content-type: ${type}`, "expect: 100-continue"];
      connection.write([...head, ...header, `content-length: ${String(length)}`, "", ""].join("\r\n"));
      const response = await connection.readResponse();
      expect(response).toMatchObject({ httpStatus, interim: [] });
      // The body may follow anyway, which the server cannot know, so the connection is closed.
      expect(fieldValue(response.header, "connection")).toBe("close");
    },
  );

  test("gets 417 for an expectation other than 100-continue", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.request(water(Object.entries({ "x-key": "k", expect: "200-ok" }), "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 417, interim: [] });
  });

  test("gets only the final response over HTTP/1.0", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.write(
      `POST ${path} HTTP/1.0\r\nx-key: k\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    );
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200, interim: [] });
  });
});

const gzipped = "transfer-encoding: gzip, chunked";

test.each([
  { name: "a method of 100,000 characters", sent: "M".repeat(100_000) },
  { name: "an unknown transfer coding", sent: `POST ${path} HTTP/1.1\r\nhost: x\r\n${gzipped}\r\n\r\n0\r\n\r\n` },
])("a request with $name gets 501, and its connection is closed", async ({ sent }) => {
  await using connection = await openGreenhouse(openHttp1, {});
  connection.write(sent);
  expect([await connection.readResponse(), await connection.atEnd()]).toMatchObject([{ httpStatus: 501 }, true]);
});

describe("request limits", () => {
  const options = { readMaxBytes: 100, limits: { urlBytes: 100, headerBytes: 2000 } };
  const greenhouse = shared(() => startGreenhouse({ waterBed: ({ bed }) => ({ bed }) }, options));
  test.each([
    ["a long URL", 414, `/${"x".repeat(100)}`, []],
    ["a URL longer than the header limit", 414, `/${"x".repeat(3000)}`, []],
    ["a long header field", 431, path, [`x: ${"x".repeat(2000)}`]],
    ["many header fields", 431, path, Array.from({ length: 600 }, (_, at) => `x${String(at)}: y`)],
  ])("refuse %s with %s and an error record", async (_name, httpStatus, target, header) => {
    using connection = await openHttp1(greenhouse.address);
    connection.write([`POST ${target} HTTP/1.1`, "host: x", ...header, "", ""].join("\r\n"));
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(httpStatus);
    expect(fieldValue(response.header, "content-type")).toBe("application/json");
    expect(JSON.parse(response.body.toString())).toMatchObject({ code: Code.ResourceExhausted });
  });

  test.each([
    { name: "at the limit", bytes: 2000, httpStatus: 200 },
    { name: "one byte over the limit", bytes: 2001, httpStatus: 431 },
  ])("small header fields $name get a $httpStatus response", async ({ bytes, httpStatus }) => {
    using connection = await openHttp1(greenhouse.address);
    const header = headerOfListBytes([["host", "x"], ["content-length", "2"], json], bytes);
    connection.request({ httpMethod: "POST", path, header, body: Buffer.from("{}") });
    expect(await connection.readResponse()).toMatchObject({ httpStatus });
  });
});

// Timeouts of half a second let a busy machine read a request in time. The tests only wait, so they run concurrently.
describe.concurrent("an HTTP/1.1 client", () => {
  const timeouts = { headerTimeoutMs: 500, requestTimeoutMs: 600, idleTimeoutMs: 500 };
  const greenhouse = shared(() => startGreenhouse({ waterBed: ({ bed }) => ({ bed }) }, { limits: timeouts }));
  test.for([
    { name: "an incomplete first header", sent: `POST ${path} HTTP/1.1\r\nhost: x\r\n` },
    { name: "an incomplete body", sent: `${jsonHead}content-length: 2\r\n\r\n{` },
  ])("gets 408 after $name, and is disconnected", async ({ sent }) => {
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(408);
    expect(JSON.parse(response.body.toString())).toMatchObject({ code: Code.InvalidArgument });
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets 408 for a partial header sent with a complete request", async () => {
    using connection = await openHttp1(greenhouse.address);
    for (const next of ["", "POST /beds"]) {
      connection.write(`${jsonHead}content-length: 2\r\n\r\n{}${next}`);
      expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    }
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 408 });
  });

  test.for([
    { name: "an incomplete header", sent: "G" },
    { name: "an incomplete body", sent: `${jsonHead}content-length: 2\r\n\r\n{` },
  ])("gets the full timeout for $name after an idle period", async ({ sent }) => {
    const timeoutMs = 600;
    const limits = { headerTimeoutMs: timeoutMs, requestTimeoutMs: timeoutMs, idleTimeoutMs: 60_000 };
    await using waiting = await openGreenhouse(openHttp1, {}, { limits });
    waiting.request({ httpMethod: "GET", path: "/nothing", header: [] });
    await waiting.readResponse();
    using other = await openHttp1(waiting.greenhouse.address);
    for (const connection of [other, waiting]) {
      const sentMs = performance.now();
      connection.write(sent);
      expect(await connection.readResponse()).toMatchObject({ httpStatus: 408 });
      // The deadline is only checked a few times in this period, so the measured time may differ by one interval.
      expect(performance.now() - sentMs).toBeGreaterThan(timeoutMs / 2);
    }
  });
});

test("a request that arrives just after the idle timeout gets its response", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { limits: { idleTimeoutMs: 400 } });
  using connection = await openHttp1(greenhouse.address);
  connection.request(water([], "{}"));
  await connection.readResponse();
  vi.advanceTimersByTime(400);
  await nextTurn();
  connection.request(water([], "{}"));
  // Runs the check that finds the connection idle for too long.
  vi.advanceTimersByTime(100);
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
});

test("drain serves one more request on an idle connection, then closes it", async () => {
  await using connection = await openGreenhouse(openHttp1, { waterBed: ({ bed }) => ({ bed }) });
  connection.request(water([], "{}"));
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  const drained = connection.greenhouse.gateway.drain(60_000);
  connection.request(water([], "{}"));
  const { httpStatus, header } = await connection.readResponse();
  expect([httpStatus, fieldValue(header, "connection"), await connection.atEnd()]).toEqual([200, "close", true]);
  await within(drained, "the end of the drain");
});

test.each([
  { name: "an endpoint", target: "/page", want: "6" },
  { name: "an RPC with GET", target: "/sensors/s/reading", want: "14" },
])("HEAD returns GET's Content-Length for $name without a body", async ({ target, want }) => {
  await using greenhouse = await startGreenhouse(
    { getReading: ({ sensor }) => ({ sensor }) },
    { endpoints: [{ path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "orders" }) }] },
  );
  using connection = await openHttp1(greenhouse.address);
  for (const httpMethod of ["HEAD", "GET"]) {
    connection.request({ httpMethod, path: target, header: [] });
    const response = await connection.readResponse(httpMethod);
    expect([response.httpStatus, fieldValue(response.header, "content-length")]).toEqual([200, want]);
  }
});

test("onResponse reports pipelined requests in order", async () => {
  const reported: string[] = [];
  const onResponse: GatewayOptions["onResponse"] = ({ path: requested }) => void reported.push(requested);
  await using greenhouse = await startGreenhouse({ waterBed: () => Promise.resolve({}) }, { onResponse });
  using connection = await openHttp1(greenhouse.address);
  const rest = ":water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  const requests = [1, 2, 3].map((bed) => `POST /beds/${String(bed)}${rest}`);
  connection.write(requests.join(""));
  for (const _ of requests) await connection.readResponse();
  expect(reported).toEqual(["/beds/1:water", "/beds/2:water", "/beds/3:water"]);
});

test("a repeated chunked request is refused if it changes to HTTP/1.0", async () => {
  await using connection = await openGreenhouse(openHttp1, { waterBed: () => ({}) });
  const fields = "host: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked";
  const statuses: number[] = [];
  for (const version of ["1.1", "1.1", "1.0"]) {
    connection.write(`POST /beds/7:water HTTP/${version}\r\n${fields}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`);
    statuses.push((await connection.readResponse()).httpStatus);
  }
  expect(statuses).toEqual([200, 200, 400]);
});

test("a call gets a 400 response if its client closes its side within the body", async () => {
  await using greenhouse = await startGreenhouse({});
  using connection = await openHttp1(greenhouse.address);
  connection.write(
    `POST ${waterBedProcedure} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{`,
  );
  connection.socket.end();
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
  expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 400, error: { code: Code.InvalidArgument } });
});

test("admit finds a header field that follows 2,500 others", async () => {
  let last: string | null = null;
  await using greenhouse = await startGreenhouse(
    { waterBed: () => ({}) },
    {
      admit: ({ header }) => {
        last = header.get("x-last");
      },
      limits: { headerBytes: 100_000 },
    },
  );
  using connection = await openHttp1(greenhouse.address);
  const many = Array.from({ length: 2500 }, (_, at): Field => [`a${String(at % 10)}`, "b"]);
  connection.request(water([...many, ["x-last", "here"]], "{}"));
  expect([(await connection.readResponse()).httpStatus, last]).toEqual([200, "here"]);
});

test("admit receives the same connection object for requests on one connection", async () => {
  const connections: object[] = [];
  const admit: Admit = ({ connection }) => void connections.push(connection);
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit });
  using first = await openHttp1(greenhouse.address);
  using second = await openHttp1(greenhouse.address);
  for (const connection of [first, second, first]) {
    connection.request(water([], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  }
  expect(connections[2]).toBe(connections[0]);
  expect(connections[1]).not.toBe(connections[0]);
});

describe("a request that becomes malformed during admission", () => {
  const expects: Field = ["expect", "100-continue"];
  const connectStream: Field = ["content-type", "application/connect+proto"];
  const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";
  test.each<{ name: string; target: string; fields: readonly Field[] }>([
    { name: "a unary call", target: path, fields: [json] },
    { name: "a unary call that expects 100-continue", target: path, fields: [json, expects] },
    { name: "a streaming call", target: watchReadings, fields: [connectStream] },
    { name: "a streaming call that expects 100-continue", target: watchReadings, fields: [connectStream, expects] },
  ])("gets one 400 response and never reaches the handler ($name)", async ({ target, fields }) => {
    const admitted = Promise.withResolvers<void>();
    let ran = false;
    const run = (): never => {
      ran = true;
      throw new ConnectError("it ran", Code.Internal);
    };
    const handlers = { waterBed: run, watchReadings: run };
    await using greenhouse = await startGreenhouse(handlers, { admit: () => admitted.promise });
    using connection = await openHttp1(greenhouse.address);
    const header = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    connection.write(`POST ${target} HTTP/1.1\r\nhost: x\r\n${header}transfer-encoding: chunked\r\n\r\nno chunk\r\n`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
    admitted.resolve();
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 400, error: { code: Code.Canceled } });
    expect(ran).toBe(false);
  });
});

test("a client that pipelines requests gets earlier responses before 400 for bytes that are not HTTP", async () => {
  await using greenhouse = await startGreenhouse(
    { waterBed: () => Promise.resolve({ note: "first" }) },
    { endpoints: [{ path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "second" }) }] },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.request(water([], "{}"));
  connection.write("GET /page HTTP/1.1\r\nhost: x\r\n\r\norders\r\n\r\n");
  expect(String((await connection.readResponse()).body)).toContain("first");
  expect(String((await connection.readResponse()).body)).toContain("second");
  expect([await connection.readResponse(), await connection.atEnd()]).toMatchObject([{ httpStatus: 400 }, true]);
});

/** Refuses the first request when its body has filled the buffer. */
function refuseWhenPaused(): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls > 1) return;
    await within(nextEvent("pause"), "the server to pause reading");
    throw new ConnectError("no key", Code.Unauthenticated);
  };
}

describe("an unread body", () => {
  test.each([
    ["an unknown path", "/nothing", [], 404],
    ["an unsupported content type", waterBedProcedure, ["content-type: text/plain"], 415],
  ])("does not delay the response to %s even if it is malformed", async (_name, target, header, httpStatus) => {
    await using connection = await openGreenhouse(openHttp1, {});
    const head = [`POST ${target} HTTP/1.1`, "host: x", "transfer-encoding: chunked", ...header, "", ""].join("\r\n");
    connection.write(`${head}no length\r\n`);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(httpStatus);
    expect([fieldValue(response.header, "connection"), await connection.atEnd()]).toEqual(["close", true]);
  });

  const largest = 256 * 1024;

  test("is dropped and keeps the connection open if it is small", async () => {
    await using connection = await openGreenhouse(openHttp1, { waterBed: () => ({}) });
    connection.request({ httpMethod: "POST", path: "/nothing", header: [], body: Buffer.alloc(largest) });
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(404);
    expect(fieldValue(response.header, "connection")).not.toBe("close");
    connection.request(water([], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("is dropped even if reading was paused before the response", async () => {
    await using connection = await openGreenhouse(openHttp1, { waterBed: () => ({}) }, { admit: refuseWhenPaused() });
    connection.request({ httpMethod: "POST", path, header: [json], body: Buffer.alloc(largest) });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 401 });
    connection.request(water([], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("over 256 KiB is read completely after a pause before the response", async () => {
    await using connection = await openGreenhouse(openHttp1, {}, { admit: refuseWhenPaused() });
    connection.request({ httpMethod: "POST", path, header: [json], body: Buffer.alloc(32 * largest) });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 401 });
    connection.socket.end();
    await within(once(connection.socket, "finish"), "the server to read the body");
    expect([await connection.atEnd(), connection.socket.errored]).toEqual([true, null]);
  });

  test.each<{ name: string; bytes: number; header: readonly Field[] }>([
    { name: "exceeds 256 KiB", bytes: largest + 1, header: [] },
    { name: "follows Expect: 100-continue", bytes: largest, header: [["expect", "100-continue"]] },
  ])("that $name is read completely before the connection closes", async ({ bytes, header }) => {
    await using greenhouse = await startGreenhouse({});
    using connection = await openHttp1(greenhouse.address);
    connection.request({ httpMethod: "POST", path: "/nothing", header, body: Buffer.alloc(bytes) });
    const response = await connection.readResponse();
    expect([response.httpStatus, fieldValue(response.header, "connection")]).toEqual([404, "close"]);
    expect(String(await connection.readToEnd())).toBe("");
    // Unread bytes would cause a reset, which may overtake the response.
    expect(connection.socket.errored).toBeNull();
  });
});
