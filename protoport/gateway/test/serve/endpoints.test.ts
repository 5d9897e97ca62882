import { createHmac } from "node:crypto";
import { gzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGateway, type Endpoint } from "../../src/index.ts";
// oxfmt-ignore
import { type Field, fieldValue, type HttpRequest, kitchenSinkOptions, openEveryTransport, openUpload, shared,
  startGreenhouse, transportNames, waysFor, within } from "@protoport/testing";

// Endpoints with methods other than GET, such as a webhook that checks the signature of the sent bytes.

const secret = "a secret of the hook";

const hook: Endpoint = {
  path: "/hooks/payment",
  httpMethods: ["POST", "PUT"],
  open: true,
  async handle({ httpMethod, target, header, readBody }) {
    const body = await readBody(1024);
    const again = await readBody(1);
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const isSigned = header.get("x-signature") === signature && again === body;
    if (!isSigned) throw new ConnectError("the signature is wrong", Code.PermissionDenied);
    return { httpStatus: 202, body: `${httpMethod} ${target} ${String(body.byteLength)}` };
  },
};

const page: Endpoint = { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "page" }) };
/** Responds with the HTTP status in the query. */
const respond: Endpoint["handle"] = ({ target }) => ({ httpStatus: Number(target.split("?")[1]), body: "status" });
const anyStatus: Endpoint = { path: "/status", open: true, handle: respond };
/** Returns header fields that only the server may set. */
const transportFields: Endpoint = {
  path: "/transport-fields",
  open: true,
  handle: () => ({
    httpStatus: 200,
    header: { "Content-Length": "2", connection: "x-odd", date: "x-odd", "transfer-encoding": "chunked", trailer: "a" },
    body: "page",
  }),
};
const form: Endpoint = { ...page, path: "/form", httpMethods: ["GET", "POST"] };
const sign = (body: Uint8Array): Field => ["x-signature", createHmac("sha256", secret).update(body).digest("hex")];

describe("an endpoint with methods other than GET", () => {
  const gateway = shared(() =>
    openEveryTransport({
      ...kitchenSinkOptions,
      endpoints: [hook, page, form, anyStatus, transportFields],
      onFault: () => {},
    }),
  );

  describe.each(waysFor(transportNames))("%s", (transport) => {
    const path = "/hooks/payment?a=%20b";
    const large = Buffer.alloc(1025);

    test.each(["POST", "PUT"])("gets a %s body's bytes", async (httpMethod) => {
      const body = gzipSync('{"id": 9007199254740993}');
      const header: readonly Field[] = [["content-type", "application/json"], ["content-encoding", "gzip"], sign(body)];
      const response = await gateway.ask(transport, { httpMethod, path, header, body });
      expect([response.httpStatus, String(response.body)]).toEqual([202, `${httpMethod} ${path} ${body.byteLength}`]);
    });

    test.each([
      { httpStatus: 200, want: 200 },
      { httpStatus: 599, want: 599 },
      // 199 is an interim status, and RFC 9110 §15 calls the others invalid.
      { httpStatus: 199, want: 500 },
      { httpStatus: 600, want: 500 },
      { httpStatus: 200.5, want: 500 },
      { httpStatus: Number.NaN, want: 500 },
    ])("if it returns the status $httpStatus, sends a $want response", async ({ httpStatus, want }) => {
      const response = await gateway.ask(transport, { httpMethod: "GET", path: `/status?${httpStatus}`, header: [] });
      expect(response.httpStatus).toBe(want);
    });

    test.each([
      { httpStatus: 204, lengths: [undefined] },
      // A 205 response ends with its header, or has a length of 0 (RFC 9110 §15.3.6).
      { httpStatus: 205, lengths: [undefined, "0"] },
      { httpStatus: 304, lengths: [undefined] },
    ])("sends a $httpStatus response without its body's length", async ({ httpStatus, lengths }) => {
      const response = await gateway.ask(transport, { httpMethod: "GET", path: `/status?${httpStatus}`, header: [] });
      expect([response.httpStatus, String(response.body)]).toEqual([httpStatus, ""]);
      expect(lengths).toContain(fieldValue(response.header, "content-length"));
    });

    test("cannot set the fields that describe the connection and the length", async () => {
      for (const httpMethod of ["GET", "HEAD", "GET"]) {
        const response = await gateway.ask(transport, { httpMethod, path: "/transport-fields", header: [] });
        expect([response.httpStatus, String(response.body)]).toEqual([200, httpMethod === "GET" ? "page" : ""]);
        expect(response.header.filter(([name]) => name === "content-length")).toEqual([["content-length", "4"]]);
        expect(response.header.flat()).not.toContain("x-odd");
      }
    });

    const wrongSignature = expect.stringContaining("signature is wrong");
    test.each<[name: string, request: Omit<HttpRequest, "httpMethod">, httpStatus: number, body: unknown]>([
      ["gets an empty body from a request without body", { path, header: [sign(Buffer.of())] }, 202, `POST ${path} 0`],
      ["refuses a body over limit", { path, header: [sign(large)], body: large }, 413, expect.stringContaining("1024")],
      ["responds with the error that it throws", { path, header: [], body: Buffer.from("x") }, 403, wrongSignature],
      ["may leave its body unread", { path: "/form", header: [], body: Buffer.alloc(100_000) }, 200, "page"],
    ])("%s", async (_name, request, httpStatus, body) => {
      const response = await gateway.ask(transport, { httpMethod: "POST", ...request });
      expect([response.httpStatus, String(response.body)]).toEqual([httpStatus, body]);
    });

    test.each([
      { httpMethod: "GET", path: "/hooks/payment", allow: "POST, PUT" },
      { httpMethod: "HEAD", path: "/hooks/payment", allow: "POST, PUT" },
      { httpMethod: "DELETE", path: "/hooks/payment", allow: "POST, PUT" },
      { httpMethod: "DELETE", path: "/form", allow: "GET, HEAD, POST" },
      { httpMethod: "POST", path: "/page", allow: "GET, HEAD" },
    ])('refuses $httpMethod $path with 405 and "Allow: $allow"', async ({ httpMethod, path: at, allow }) => {
      const response = await gateway.ask(transport, { httpMethod, path: at, header: [] });
      expect([response.httpStatus, fieldValue(response.header, "allow")]).toEqual([405, allow]);
    });

    test("responds to HEAD if it accepts GET", async () => {
      const response = await gateway.ask(transport, { httpMethod: "HEAD", path: "/form", header: [] });
      expect([response.httpStatus, fieldValue(response.header, "content-length")]).toEqual([200, "4"]);
    });
  });
});

function admitNobody(): never {
  throw new ConnectError("no credential", Code.Unauthenticated);
}

// A Fetch URL always has a path, and HTTP/2 resets other methods (RFC 9113 §8.3.1).
test.each([
  { transport: "the engine's HTTP/1.1", httpMethod: "OPTIONS", want: 204 },
  { transport: "the engine's HTTP/2", httpMethod: "OPTIONS", want: 204 },
  { transport: "a handler in node:http", httpMethod: "OPTIONS", want: 204 },
  { transport: "a handler in node:http2", httpMethod: "OPTIONS", want: 204 },
  { transport: "the engine's HTTP/1.1", httpMethod: "GET", want: 400 },
  { transport: "a handler in node:http", httpMethod: "DELETE", want: 400 },
] as const)(
  "$httpMethod * without a credential gets $want from $transport, with any requestPathPrefix",
  async ({ transport, httpMethod, want }) => {
    for (const requestPathPrefix of ["", "/api"]) {
      await using gateway = await openEveryTransport({ ...kitchenSinkOptions, requestPathPrefix, admit: admitNobody });
      const response = await gateway.ask(transport, { httpMethod, path: "*", header: [] });
      expect([response.httpStatus, response.body.byteLength > 0]).toEqual([want, want !== 204]);
    }
  },
);

test.each(["1.1", "2", "fetch"] as const)("over HTTP %s, readBody() rejects if its client leaves", async (version) => {
  const read = Promise.withResolvers<unknown>();
  const reading: Endpoint = {
    ...hook,
    async handle(request) {
      const body = request.readBody(1024);
      body.then(read.resolve, read.resolve);
      return { httpStatus: 200, body: await body };
    },
  };
  await using greenhouse = await startGreenhouse({}, { endpoints: [reading] });
  using upload = await openUpload(greenhouse, version, ["POST", "/hooks/payment"]);
  upload.write("half");
  await expect.poll(() => upload.waitingBytes).toBe(0);
  upload.reset();
  const message: unknown = expect.stringContaining("client");
  expect(await within(read.promise, "the end")).toMatchObject({ name: "ConnectError", message });
});

test.each([
  { name: "pending when the response is sent", isLate: false },
  { name: "made after the response is sent", isLate: true },
])("a readBody() call $name is rejected", async ({ isLate }) => {
  const read = Promise.withResolvers<unknown>();
  const hasty: Endpoint = {
    ...hook,
    handle({ readBody }) {
      const readIt = (): void => void readBody(1024).then(read.resolve, read.resolve);
      if (isLate) setImmediate(readIt);
      else readIt();
      return { httpStatus: 202, body: "" };
    },
  };
  await using gateway = await openEveryTransport({ ...kitchenSinkOptions, endpoints: [hasty] });
  const request = { httpMethod: "POST", path: hasty.path, header: [], body: Buffer.from("event") };
  expect((await gateway.ask("the engine's HTTP/1.1", request)).httpStatus).toBe(202);
  expect(await within(read.promise, "the end")).toMatchObject({
    rawMessage: "the response was sent before the request body was read",
  });
});

// The client decides when its body ends, so a body promise that the endpoint ignores must not exit the process.
describe.each(waysFor(transportNames))("an endpoint that has started reading a body, over %s", (transport) => {
  test.each<[name: string, handle: Endpoint["handle"]]>([
    [
      "synchronously",
      ({ readBody }) => {
        void readBody(4);
        return { httpStatus: 401, body: "" };
      },
    ],
    [
      "asynchronously",
      async ({ readBody }) => {
        const body = readBody(4);
        await new Promise(setImmediate);
        if (body !== undefined) throw new ConnectError("the signature is wrong", Code.Unauthenticated);
        return { httpStatus: 200, body: "" };
      },
    ],
  ])("may respond %s before the body arrives", async (_name, handle) => {
    const unhandled: unknown[] = [];
    const record = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", record);
    try {
      await using gateway = await openEveryTransport({ ...kitchenSinkOptions, endpoints: [{ ...hook, handle }] });
      for (const body of ["ok", "longer than four bytes"]) {
        const request = { httpMethod: "POST", path: hook.path, header: [], body: Buffer.from(body) };
        expect((await gateway.ask(transport, request)).httpStatus).toBe(401);
      }
      await new Promise(setImmediate);
    } finally {
      process.off("unhandledRejection", record);
    }
    expect(unhandled).toEqual([]);
  });
});

test.each([Number.NaN, 0, -1, 1.5, Infinity])("the limit %s is rejected by readBody()", async (maxBytes) => {
  let thrown: unknown;
  const wrong: Endpoint = {
    ...hook,
    handle({ readBody }) {
      try {
        void readBody(maxBytes);
      } catch (error) {
        thrown = error;
      }
      return { httpStatus: 202, body: "" };
    },
  };
  const { fetch } = createGateway({ ...kitchenSinkOptions, endpoints: [wrong] });
  expect((await fetch(new Request(`http://a${wrong.path}`, { method: "POST", body: "event" }))).status).toBe(202);
  expect(thrown).toEqual(new RangeError(`maxBytes of readBody must be a positive integer, got ${maxBytes}`));
});

test("a page of another origin may use the methods of endpoints", async () => {
  const cors = { origins: "*" } as const;
  const endpoints = [{ ...hook, httpMethods: ["REPORT"] }];
  const { fetch } = createGateway({ routes: () => undefined, endpoints, cors });
  const headers = { origin: "https://a.example", "access-control-request-method": "REPORT" };
  const { headers: responseHeader } = await fetch(
    new Request("http://a/hooks/payment", { method: "OPTIONS", headers }),
  );
  expect(responseHeader.get("access-control-allow-methods")).toBe("GET, HEAD, POST, REPORT");
});

test.each(["post", "CONNECT"])("an endpoint with the method %s is rejected by createGateway()", (httpMethod) => {
  const endpoints = [{ ...hook, httpMethods: [httpMethod] }];
  expect(() => createGateway({ ...kitchenSinkOptions, endpoints })).toThrow(
    `endpoint /hooks/payment: the HTTP/1.1 parser does not accept the method "${httpMethod}"`,
  );
});

test.each([
  { name: "yields when a rule has its path", yieldsToRules: true, body: '{"rpc":"Query","sink":{}}' },
  { name: "responds when the rule has another path", yieldsToRules: true, path: "/elsewhere", body: "page" },
])("an endpoint with yieldsToRules $name", async ({ yieldsToRules, path = "/page", body }) => {
  const rule = { selector: "kitchensink.v1.KitchenSink.Query", pattern: { case: "get", value: path } } as const;
  const endpoints = [{ ...page, yieldsToRules }];
  const { fetch } = createGateway({ ...kitchenSinkOptions, rest: { rules: [rule] }, endpoints });
  expect(await (await fetch(new Request("http://a/page"))).text()).toBe(body);
});
