import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Field, fieldValue, type HttpRequest, type HttpResponse, openEveryTransport, openGreenhouse, openHttp1,
  shared, startGreenhouse, transportNames } from "@protoport/testing";
import type { GatewayOptions } from "../../src/index.ts";
import { createCors } from "../../src/serve/cors.ts";

function toObject(fields: readonly string[] | undefined): Record<string, string> | undefined {
  if (fields === undefined) return undefined;
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : [])));
}

const shop = "https://shop.example";
const options = { origins: [shop], allowedHeaders: ["X-Trace"], exposedHeaders: ["X-Cost"], maxAgeSeconds: 60 };
const listed = createCors(options, ["DELETE", "PROPFIND", "GET", "DELETE"]);
const any = createCors({ origins: "*" }, []);

test.each(["https://a.example:8443", "http://[::1]:3000", "capacitor://localhost", "null"])(
  "createCors() accepts the origin %s",
  (origin) => {
    const fields = createCors({ origins: [origin] }, []).responseFields(origin);
    expect(toObject(fields)).toMatchObject({ "access-control-allow-origin": origin });
  },
);

test.each(["*", `${shop}/`, `${shop}:443`, "https://Shop.example", "shop.example", ""])(
  'createCors() refuses "%s" in an array, because no browser sends this origin',
  (origin) => {
    const message = `cors.origins must be "*", or an array with origins such as "${shop}", got "${origin}"`;
    expect(() => createCors({ origins: [shop, origin] }, [])).toThrow(message);
  },
);

test("createCors() refuses a string that is not *", () =>
  expect(() => Reflect.apply(createCors, undefined, [{ origins: shop }, []])).toThrow(`got "${shop}"`));

describe("Cors.preflight()", () => {
  test("allows the protocols' and the configured fields for a listed origin", () => {
    const preflight = { httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "DELETE" };
    const fields = toObject(listed.preflight(preflight));
    const methods = "DELETE, GET, HEAD, POST, PROPFIND";
    expect(fields).toMatchObject({ "access-control-allow-origin": shop, "access-control-allow-methods": methods });
    expect(fields).toMatchObject({ "access-control-max-age": "60", vary: "origin" });
    const allowed = fields?.["access-control-allow-headers"]?.toLowerCase().split(", ");
    const grpc = ["x-grpc-web", "grpc-timeout"];
    const names = ["authorization", "content-type", "connect-protocol-version", ...grpc, "x-trace"];
    expect(allowed).toEqual(expect.arrayContaining(names));
    expect(new Set(allowed).size).toBe(allowed?.length);
  });

  test("allows every origin with *, without Vary", () => {
    const fields = toObject(any.preflight({ httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "GET" }));
    expect(fields).toMatchObject({ "access-control-allow-origin": "*", "access-control-max-age": "7200" });
    expect(fields).not.toHaveProperty("vary");
  });

  test.each([
    { methods: [], want: "GET, HEAD, POST" },
    { methods: ["PUT", "*"], want: "*" },
  ])("for rules with the methods $methods, allows $want in requests", ({ methods, want }) => {
    const preflight = { httpMethod: "OPTIONS", origin: shop, accessControlRequestMethod: "GET" };
    const fields = createCors({ origins: "*" }, methods).preflight(preflight);
    expect(toObject(fields)).toMatchObject({ "access-control-allow-methods": want });
  });

  // oxfmt-ignore
  test.each([
    "https://evil.example", "null", "https://shop.example.evil", "https://SHOP.example", "http://shop.example", "",
  ])("for the origin %j allows nothing", (origin) => {
    const fields = listed.preflight({ httpMethod: "OPTIONS", origin, accessControlRequestMethod: "GET" });
    expect(toObject(fields)).toEqual({ vary: "origin" });
  });

  const both = [true, false];
  const requests = both.flatMap((isOptions) =>
    both.flatMap((hasOrigin) => both.map((asksForMethod) => ({ isOptions, hasOrigin, asksForMethod }))),
  );
  test.each(requests)(
    "returns fields only for a preflight (OPTIONS: $isOptions, origin: $hasOrigin, method: $asksForMethod)",
    (request) => {
      const fields = listed.preflight({
        httpMethod: request.isOptions ? "OPTIONS" : "DELETE",
        origin: request.hasOrigin ? shop : null,
        accessControlRequestMethod: request.asksForMethod ? "DELETE" : null,
      });
      expect(fields !== undefined).toBe(request.isOptions && request.hasOrigin && request.asksForMethod);
    },
  );
});

test("Cors.responseFields() exposes the challenge and protocol fields to a listed origin", () => {
  const fields = toObject(listed.responseFields(shop));
  expect(fields).toMatchObject({ "access-control-allow-origin": shop, vary: "origin" });
  const exposed = fields?.["access-control-expose-headers"]?.toLowerCase().split(", ");
  for (const name of ["www-authenticate", "retry-after", "grpc-status", "grpc-message", "x-cost"])
    expect(exposed).toContain(name);
});

test("Cors.responseFields() never allows credentials", () =>
  expect(toObject(any.responseFields(shop))).not.toHaveProperty("access-control-allow-credentials"));

test.each([
  { origin: null, cors: listed, want: { vary: "origin" } },
  { origin: "https://evil.example", cors: listed, want: { vary: "origin" } },
  { origin: null, cors: any, want: {} },
])("Cors.responseFields() for the origin $origin allows nothing", ({ origin, cors, want }) => {
  expect(toObject(cors.responseFields(origin))).toEqual(want);
});

// A page can read a response only if it has the CORS fields (Fetch §3.2.5), including responses that are sent before
const limits = { headerBytes: 2_000, urlBytes: 200, headerTimeoutMs: 300, requestTimeoutMs: 600 };

/** A response's CORS fields, including duplicates. */
const corsFields = ({ header }: Pick<HttpResponse, "header">): Field[] =>
  header.filter(([name]) => /^(?:access-control-allow-origin|vary)$/i.test(name));

// oxfmt-ignore
const policies = [
  { origins: "*" as const, want: [["access-control-allow-origin", "*"]] },
  { origins: [shop], want: [["access-control-allow-origin", shop], ["vary", "origin"]] },
];

interface Case {
  readonly name: string;
  readonly httpStatus: number;
  readonly request: HttpRequest;
  readonly transports: readonly (typeof transportNames)[number][];
}

const requests: readonly Case[] = [
  {
    name: "a URL over the limit",
    httpStatus: 414,
    transports: transportNames,
    request: { httpMethod: "GET", path: `/${"x".repeat(400)}`, header: [["origin", shop]] },
  },
  {
    name: "header fields over the limit",
    httpStatus: 431,
    // If the gateway is mounted, the limit of the application's server applies.
    transports: transportNames.filter((name) => !name.startsWith("a handler")),
    request: {
      httpMethod: "GET",
      path: "/beds/7",
      header: Object.entries({ origin: shop, "x-large": "y".repeat(2_100) }),
    },
  },
];

describe.each(policies)("with the origins $origins", ({ origins, want }) => {
  const transports = shared(() => openEveryTransport({ routes: () => {}, cors: { origins }, limits }));
  test.each(requests.flatMap((row) => row.transports.map((transport) => ({ ...row, transport }))))(
    "over $transport, the $httpStatus response to $name can be read by pages",
    async ({ transport, request, httpStatus }) => {
      const response = await transports.ask(transport, request);
      expect(response.httpStatus).toBe(httpStatus);
      expect(JSON.parse(String(response.body))).toMatchObject({ code: Code.ResourceExhausted });
      expect(corsFields(response)).toEqual(want);
    },
  );
});

const origin = `Origin: ${shop}\r\n`;
// oxfmt-ignore
const unread = [
  { name: "an expectation that cannot be met", httpStatus: 417,
    sent: "GET /beds/7 HTTP/1.1\r\nhost: x\r\nexpect: x\r\n" },
  { name: "an unknown transfer coding", httpStatus: 400,
    sent: "POST /beds/7:water HTTP/1.1\r\nhost: x\r\ntransfer-encoding: tar\r\n" },
  { name: "a malformed field", httpStatus: 400, sent: "GET /beds/7 HTTP/1.1\r\nhost: x\r\nfo o: bar\r\n" },
  { name: "a missing Host", httpStatus: 400, sent: "GET /beds/7 HTTP/1.1\r\n" },
  { name: "an unsupported version of HTTP", httpStatus: 400, sent: "GET /beds/7 HTTP/4.0\r\nhost: x\r\n" },
  { name: "a header over every limit", httpStatus: 431,
    sent: `GET /beds/7 HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(5_000)}\r\n` },
  { name: "a body that does not arrive", httpStatus: 408,
    sent: "POST /beds/7:water HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n" },
];

describe("a request that is not read", () => {
  const unreadOptions: Partial<GatewayOptions> = { cors: { origins: [shop] }, limits };
  const greenhouse = shared(() => startGreenhouse({}, unreadOptions));
  async function responseTo(sent: string): Promise<HttpResponse> {
    using connection = await openHttp1(greenhouse.address);
    connection.write(sent);
    return await connection.readResponse();
  }

  const allowed = Object.entries({ "access-control-allow-origin": shop, vary: "origin" });

  // In the first case the Origin field precedes the invalid part, in the second it follows.
  test.each(unread.flatMap((row) => [true, false].map((originFirst) => ({ ...row, originFirst }))))(
    "pages can read the $httpStatus response to $name (Origin field first: $originFirst)",
    async ({ sent, httpStatus, originFirst }) => {
      const [line = "", ...fields] = sent.split(/(?<=\r\n)/);
      const lines = originFirst ? [line, origin, ...fields] : [line, ...fields, origin];
      const response = await responseTo(`${lines.join("")}\r\n`);
      expect([response.httpStatus, corsFields(response)]).toEqual([httpStatus, allowed]);
    },
  );

  test("pages of other origins cannot read the response", async () => {
    const response = await responseTo(
      `GET /beds/7 HTTP/1.1\r\nhost: x\r\nfo o: bar\r\nOrigin: https://evil.example\r\n\r\n`,
    );
    expect(corsFields(response)).toEqual([["vary", "origin"]]);
  });
});

test("all pages can read a 400 if origins is *", async () => {
  await using connection = await openGreenhouse(openHttp1, {}, { cors: { origins: "*" }, limits });
  connection.write("NOT HTTP\r\n\r\n");
  const response = await connection.readResponse();
  expect([response.httpStatus, corsFields(response)]).toEqual([400, [["access-control-allow-origin", "*"]]]);
});

test("pages can read the 408 for an incomplete header", async () => {
  await using connection = await openGreenhouse(openHttp1, {}, { cors: { origins: [shop] }, limits });
  connection.write(`GET /beds/7 HTTP/1.1\r\n${origin}`);
  const response = await connection.readResponse();
  expect([response.httpStatus, fieldValue(response.header, "access-control-allow-origin")]).toEqual([408, shop]);
});
