import { type EventEmitter, once } from "node:events";
import { STATUS_CODES } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Admit, Endpoint } from "../../gateway/src/index.ts";
import { within } from "../../testing/src/deadline.ts";
import { type Field, fieldValue, type HttpRequest } from "../../testing/src/carriers/exchange.ts";
import {
  acceptedSocket,
  startGreenhouse,
  type TestGreenhouse,
  waterBedProcedure,
} from "../../testing/src/gateway/greenhouse.ts";
import { headerOfListBytes } from "../../testing/src/carriers/header-list.ts";
import { openHttp1 } from "../../testing/src/carriers/http1-connection.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";

function water(header: readonly Field[], body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json, ...header], body: Buffer.from(body) };
}

const needsKey: Admit = ({ header }) => {
  if (header.get("x-key") !== "k") throw new ConnectError("no key", Code.Unauthenticated);
};

describe("a client that waits to be told to send its body", () => {
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    greenhouse = await startGreenhouse(
      { waterBed: ({ bed, note }) => ({ bed, note }) },
      { admit: needsKey, readMaxBytes: 100 },
    );
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test("is told so once it is admitted", async () => {
    using connection = await openHttp1(greenhouse.address);
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 12\r\n`;
    connection.write(`${head}expect: 100-continue\r\n\r\n`);
    const [interim] = await within(once(connection.socket, "data"), "100 (Continue)");
    expect(String(interim)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    connection.write('{"note":"n"}');
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200, interim: [100] });
  });

  test("and is answered after that, but before it has sent it, keeps its connection", async () => {
    using connection = await openHttp1(greenhouse.address);
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 12\r\n`;
    connection.write(`${head}connect-timeout-ms: 10\r\nexpect: 100-continue\r\n\r\n`);
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 504, interim: [100] });
    connection.write('{"note":"n"}');
    connection.request(water([["x-key", "k"]], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
  });

  test.each([
    { name: "not admitted", target: path, header: [], httpStatus: 401 },
    { name: "at a path that is not there", target: "/nothing", header: ["x-key: k"], httpStatus: 404 },
    { name: "not admitted at a path that is not there", target: "/nothing", header: [], httpStatus: 401 },
    { name: "about to send too much", target: path, header: ["x-key: k"], length: 101, httpStatus: 413 },
    {
      name: "about to send what cannot be decoded",
      target: path,
      header: ["x-key: k", "content-encoding: x"],
      httpStatus: 415,
    },
    { name: "about to send what is no JSON", target: path, type: "text/plain", header: ["x-key: k"], httpStatus: 415 },
    {
      name: "about to send a body that the rule has not",
      httpMethod: "GET",
      target: "/sensors/s/reading",
      header: ["x-key: k"],
      httpStatus: 400,
    },
  ])(
    "is answered $httpStatus without being told so when it is $name",
    async ({ httpMethod = "POST", target, type = "application/json", header, length = 12, httpStatus }) => {
      using connection = await openHttp1(greenhouse.address);
      const head = [`${httpMethod} ${target} HTTP/1.1`, "host: x", `content-type: ${type}`, "expect: 100-continue"];
      connection.write([...head, ...header, `content-length: ${String(length)}`, "", ""].join("\r\n"));
      const answer = await connection.readAnswer();
      expect(answer).toMatchObject({ httpStatus, interim: [] });
      // The body may follow all the same, and the server cannot know: the connection ends here.
      expect(fieldValue(answer.header, "connection")).toBe("close");
    },
  );

  test("is answered 417 when it expects something else", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.request(
      water(
        [
          ["x-key", "k"],
          ["expect", "200-ok"],
        ],
        "{}",
      ),
    );
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 417, interim: [] });
  });

  test("of HTTP/1.0, which has no interim answers, is answered all the same", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.write(
      `POST ${path} HTTP/1.0\r\nx-key: k\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    );
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200, interim: [] });
  });
});

test("the authority of a target in absolute form counts, whatever the Host", async () => {
  const urls: string[] = [];
  const waterBed = (_: unknown, { url }: { readonly url: string }): object => {
    urls.push(url);
    return {};
  };
  await using greenhouse = await startGreenhouse({ waterBed });
  using connection = await openHttp1(greenhouse.address);
  for (const host of ["http://orders.example", ""]) {
    connection.request({ ...water([], "{}"), path: host + path });
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
  }
  const { address, port } = greenhouse.address;
  expect(urls).toEqual([`http://orders.example${path}`, `http://${address}:${String(port)}${path}`]);
});

describe("over its limit,", () => {
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    greenhouse = await startGreenhouse(
      { waterBed: ({ bed }) => ({ bed }) },
      { readMaxBytes: 100, limits: { urlBytes: 100, headerBytes: 2000 } },
    );
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test.each([
    { name: "a URL", target: `/${"x".repeat(100)}`, header: [], httpStatus: 414 },
    { name: "a URL that no header would have room for", target: `/${"x".repeat(3000)}`, header: [], httpStatus: 414 },
    { name: "one header field", target: path, header: [`x: ${"x".repeat(2000)}`], httpStatus: 431 },
    {
      name: "many header fields",
      target: path,
      header: Array.from({ length: 600 }, (_, at) => `x${String(at)}: y`),
      httpStatus: 431,
    },
  ])("$name is answered $httpStatus with a record", async ({ target, header, httpStatus }) => {
    using connection = await openHttp1(greenhouse.address);
    connection.write([`POST ${target} HTTP/1.1`, "host: x", ...header, "", ""].join("\r\n"));
    const answer = await connection.readAnswer();
    expect(answer.httpStatus).toBe(httpStatus);
    expect(fieldValue(answer.header, "content-type")).toBe("application/json");
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: Code.ResourceExhausted });
  });

  test.each([
    { name: "as large as may be", bytes: 2000, httpStatus: 200 },
    { name: "a byte larger", bytes: 2001, httpStatus: 431 },
  ])(
    "or just at it, a header of many small fields that is $name is answered $httpStatus",
    async ({ bytes, httpStatus }) => {
      using connection = await openHttp1(greenhouse.address);
      const header = headerOfListBytes([["host", "x"], ["content-length", "2"], json], bytes);
      connection.request({ httpMethod: "POST", path, header, body: Buffer.from("{}") });
      expect(await connection.readAnswer()).toMatchObject({ httpStatus });
    },
  );

  test.each([
    { name: "announced", header: [], body: Buffer.from(`{"note":"${"x".repeat(100)}"}`) },
    {
      name: "in chunks",
      header: ["transfer-encoding", "chunked"],
      body: Buffer.from(`6f\r\n{"note":"${"x".repeat(100)}"}\r\n0\r\n\r\n`),
    },
  ])("a body $name is answered 413 and leaves the connection usable or closed", async ({ header, body }) => {
    using connection = await openHttp1(greenhouse.address);
    const fields: Field[] = header.length === 0 ? [] : [["transfer-encoding", "chunked"]];
    connection.request({ httpMethod: "POST", path, header: [json, ...fields], body });
    const answer = await connection.readAnswer();
    expect(answer.httpStatus).toBe(413);
    if (fieldValue(answer.header, "connection") === "close") {
      expect(await connection.atEnd()).toBe(true);
    } else {
      connection.request(water([], "{}"));
      expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    }
  });
});

// Half a second each, which a busy machine needs to take a request in time, and all of it waiting: they wait together.
describe.concurrent("a client that takes too long", () => {
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    greenhouse = await startGreenhouse(
      { waterBed: ({ bed }) => ({ bed }) },
      { limits: { headerTimeoutMs: 500, requestTimeoutMs: 600, idleTimeoutMs: 500 } },
    );
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test("to say anything is cut off", async () => {
    using connection = await openHttp1(greenhouse.address);
    expect(await connection.atEnd()).toBe(true);
  });

  test.for([
    { name: "with its first header", sent: `POST ${path} HTTP/1.1\r\nhost: x\r\n` },
    {
      name: "with its body",
      sent: `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{`,
    },
    {
      name: "with its chunks",
      sent: `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{`,
    },
  ])("$name is answered 408 with a record, and cut off", async ({ sent }) => {
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    const answer = await connection.readAnswer();
    expect(answer.httpStatus).toBe(408);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: Code.InvalidArgument });
    expect(await connection.atEnd()).toBe(true);
  });

  test("with its second header is answered 408, and cut off", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    connection.write("POST /beds");
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 408 });
    expect(await connection.atEnd()).toBe(true);
  });

  test("to ask again is cut off", async () => {
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    expect(await connection.atEnd()).toBe(true);
  });

  test.for([
    { name: "with its header", sent: "G" },
    {
      name: "with its body",
      sent: `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{`,
    },
  ])("$name has as long after a wait as without one", async ({ sent }) => {
    const timeoutMs = 600;
    const limits = { headerTimeoutMs: timeoutMs, requestTimeoutMs: timeoutMs, idleTimeoutMs: 60_000 };
    await using own = await startGreenhouse({}, { limits });
    using waiting = await openHttp1(own.address);
    waiting.request({ httpMethod: "GET", path: "/nothing", header: [] });
    await waiting.readAnswer();
    using other = await openHttp1(own.address);
    for (const connection of [other, waiting]) {
      const sentMs = performance.now();
      connection.write(sent);
      expect(await connection.readAnswer()).toMatchObject({ httpStatus: 408 });
      // It is looked at a few times in that time, and may be late by as much.
      expect(performance.now() - sentMs).toBeGreaterThan(timeoutMs / 2);
    }
  });

  test("is not one that waits for a slow handler", async () => {
    const slow = Promise.withResolvers<{ bed: bigint }>();
    await using own = await startGreenhouse(
      { waterBed: () => slow.promise, getReading: () => ({}) },
      { limits: { headerTimeoutMs: 500, requestTimeoutMs: 500, idleTimeoutMs: 500 } },
    );
    using connection = await openHttp1(own.address);
    connection.request(water([], "{}"));
    // Another connection is cut off meanwhile, so the clocks do run.
    using silent = await openHttp1(own.address);
    expect(await silent.atEnd()).toBe(true);
    slow.resolve({ bed: 7n });
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
  });
});

test("a request that has arrived is answered, however late a process that was held up looks at the clock", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using greenhouse = await startGreenhouse(
    { waterBed: ({ bed }) => ({ bed }) },
    { limits: { idleTimeoutMs: 400 } },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.request(water([], "{}"));
  await connection.readAnswer();
  vi.advanceTimersByTime(400);
  await nextTurn();
  connection.request(water([], "{}"));
  // The look that finds it idle for too long.
  vi.advanceTimersByTime(100);
  expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
});

describe("the lengths of an answer", () => {
  test.each<{ name: string; header: Record<string, string>; httpStatus: number; body: string; want: string | null }>([
    {
      name: "another length than its body",
      header: { "content-length": "2" },
      httpStatus: 200,
      body: "hello",
      want: "5",
    },
    { name: "a body where the status has none", header: {}, httpStatus: 204, body: "hello", want: null },
    { name: "a body where it is empty", header: {}, httpStatus: 205, body: "hello", want: "0" },
  ])("are as it is sent when an endpoint gives $name", async ({ header, httpStatus, body, want }) => {
    await using greenhouse = await startGreenhouse(
      {},
      { endpoints: [{ path: "/page", open: true, answer: () => ({ httpStatus, header, body }) }] },
    );
    using connection = await openHttp1(greenhouse.address);
    for (let i = 0; i < 2; i++) {
      connection.request({ httpMethod: "GET", path: "/page", header: [] });
      const answer = await connection.readAnswer();
      expect(answer.httpStatus).toBe(httpStatus);
      expect(answer.header.filter(([name]) => name === "content-length").map(([, value]) => value)).toEqual(
        want === null ? [] : [want],
      );
    }
  });
});

test("a status that a gateway may have is answered with its phrase", async () => {
  const endpoint: Endpoint = {
    path: "/status",
    open: true,
    answer: ({ header }) => ({ httpStatus: Number(header.get("x-status")), body: "" }),
  };
  await using greenhouse = await startGreenhouse({}, { endpoints: [endpoint] });
  using connection = await openHttp1(greenhouse.address);
  // Where node has the phrase of an earlier RFC.
  const phrases = { ...STATUS_CODES, 413: "Content Too Large", 422: "Unprocessable Content" };
  const without: string[] = [];
  for (const [status, phrase] of Object.entries(phrases).filter(([each]) => Number(each) >= 200)) {
    connection.request({ httpMethod: "GET", path: endpoint.path, header: [["x-status", status]] });
    const [line = ""] = (await connection.readAnswer()).head.split("\r\n");
    if (line === `HTTP/1.1 ${status} `) without.push(status);
    else expect(line).toBe(`HTTP/1.1 ${status} ${phrase}`);
  }
  // Those of proxies and of WebDAV, and others that no gateway answers.
  expect(without.join(" ")).toBe("207 208 226 305 407 418 423 424 425 451 506 507 508 509 510 511");
});

describe("HEAD", () => {
  test.each([
    { name: "an endpoint", target: "/page", want: "6" },
    { name: "an RPC by GET", target: "/sensors/s/reading", want: "14" },
  ])("of $name has the header of GET and no body", async ({ target, want }) => {
    await using greenhouse = await startGreenhouse(
      { getReading: ({ sensor }) => ({ sensor }) },
      { endpoints: [{ path: "/page", open: true, answer: () => ({ httpStatus: 200, body: "orders" }) }] },
    );
    using connection = await openHttp1(greenhouse.address);
    for (const httpMethod of ["HEAD", "GET"]) {
      connection.request({ httpMethod, path: target, header: [] });
      const answer = await connection.readAnswer(httpMethod);
      expect(answer.httpStatus).toBe(200);
      expect(fieldValue(answer.header, "content-length")).toBe(want);
    }
  });
});

test("what is sent behind a request is served once the request has been told of", async () => {
  const reported: string[] = [];
  await using greenhouse = await startGreenhouse(
    { waterBed: () => Promise.resolve({}) },
    { onAnswer: ({ path: asked }) => void reported.push(asked) },
  );
  using connection = await openHttp1(greenhouse.address);
  const requests = [1, 2, 3].map(
    (bed) =>
      `POST /beds/${String(bed)}:water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
  );
  connection.write(requests.join(""));
  for (const _ of requests) await connection.readAnswer();
  expect(reported).toEqual(["/beds/1:water", "/beds/2:water", "/beds/3:water"]);
});

test("empty lines are counted anew before each request", async () => {
  await using greenhouse = await startGreenhouse({});
  using connection = await openHttp1(greenhouse.address);
  for (let i = 0; i < 3; i++) {
    connection.write(`${"\r\n".repeat(10)}GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n`);
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 404 });
  }
});

test("a client that sends nothing but empty lines is refused", async () => {
  await using greenhouse = await startGreenhouse({});
  using connection = await openHttp1(greenhouse.address);
  connection.write("\r\n".repeat(100));
  expect(await connection.readAnswer()).toMatchObject({ httpStatus: 400 });
  expect(await connection.atEnd()).toBe(true);
});

describe("a call whose client closes the connection", () => {
  test("is cancelled, and told of with status 0", async () => {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<unknown>();
    await using greenhouse = await startGreenhouse({
      waterBed: async (_, { signal }) => {
        signal.addEventListener("abort", () => ended.resolve(signal.reason));
        started.resolve();
        return await new Promise(() => {});
      },
    });
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    await within(started.promise, "the handler");
    connection.socket.resetAndDestroy();
    expect(await within(ended.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
  });

  test("while it is being admitted never reaches an interceptor", async () => {
    const admitting = Promise.withResolvers<EventEmitter>();
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    await using greenhouse = await startGreenhouse(
      {
        waterBed: () => {
          seen.push("handler");
          return {};
        },
      },
      {
        admit: () => {
          admitting.resolve(acceptedSocket());
          return gate.promise;
        },
        interceptors: [
          (next) => (request) => {
            seen.push("interceptor");
            return next(request);
          },
        ],
      },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    const serverSide = await within(admitting.promise, "the admission");
    // Not `once` of node:events, which would fail by the reset.
    const closed = new Promise((resolve) => serverSide.once("close", resolve));
    connection.socket.resetAndDestroy();
    await within(closed, "the connection to close");
    gate.resolve();
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
    expect(seen).toEqual([]);
  });

  test("before its body is complete is told so", async () => {
    await using greenhouse = await startGreenhouse({});
    using connection = await openHttp1(greenhouse.address);
    connection.write(
      `POST ${waterBedProcedure} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{`,
    );
    connection.socket.end();
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 400 });
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 400, error: { code: Code.InvalidArgument } });
  });
});

test("no field of a request is hidden behind others, however many", async () => {
  let seen: string | null = null;
  await using greenhouse = await startGreenhouse(
    { waterBed: () => ({}) },
    {
      admit: ({ header }) => {
        seen = header.get("x-last");
      },
      limits: { headerBytes: 100_000 },
    },
  );
  using connection = await openHttp1(greenhouse.address);
  const many = Array.from({ length: 2500 }, (_, at): Field => [`a${String(at % 10)}`, "b"]);
  connection.request(water([...many, ["x-last", "here"]], "{}"));
  expect((await connection.readAnswer()).httpStatus).toBe(200);
  expect(seen).toBe("here");
});

test("the connection that admit sees is the same object for all requests of a connection, and for no other", async () => {
  const seen: object[] = [];
  await using greenhouse = await startGreenhouse(
    { waterBed: () => ({}) },
    { admit: ({ connection }) => void seen.push(connection) },
  );
  using first = await openHttp1(greenhouse.address);
  using second = await openHttp1(greenhouse.address);
  for (const connection of [first, second, first]) {
    connection.request(water([], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
  }
  expect(seen[2]).toBe(seen[0]);
  expect(seen[1]).not.toBe(seen[0]);
});

describe("a request that turns out malformed while it is admitted is refused once, and does not run as a call", () => {
  const expects: Field = ["expect", "100-continue"];
  const connectStream: Field = ["content-type", "application/connect+proto"];
  const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";
  test.each<{ name: string; target: string; fields: readonly Field[] }>([
    { name: "of one message", target: path, fields: [json] },
    { name: "of one message whose client waits to be told to send it", target: path, fields: [json, expects] },
    { name: "of a stream", target: watchReadings, fields: [connectStream] },
    {
      name: "of a stream whose client waits to be told to send it",
      target: watchReadings,
      fields: [connectStream, expects],
    },
  ])("$name", async ({ target, fields }) => {
    const admitted = Promise.withResolvers<void>();
    let ran = false;
    const run = (): never => {
      ran = true;
      throw new ConnectError("it ran", Code.Internal);
    };
    await using greenhouse = await startGreenhouse(
      { waterBed: run, watchReadings: run },
      { admit: () => admitted.promise },
    );
    using connection = await openHttp1(greenhouse.address);
    const header = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    connection.write(`POST ${target} HTTP/1.1\r\nhost: x\r\n${header}transfer-encoding: chunked\r\n\r\nno chunk\r\n`);
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 400 });
    admitted.resolve();
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 400, error: { code: Code.Canceled } });
    expect(ran).toBe(false);
  });
});
