import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Field, fieldValue, type HttpRequest, type HttpResponse, openEveryTransport, openGreenhouse, openHttp1,
  shared, startGreenhouse, transportNames } from "../../../testing/src/index.ts";
import type { GatewayOptions } from "../../src/index.ts";

// A page can read a response only if it has the CORS fields (Fetch §3.2.5), including responses that are sent before
// routing. Without them, scripts get a network error instead of the status.

const shop = "https://shop.example";
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
  const options: Partial<GatewayOptions> = { cors: { origins: [shop] }, limits };
  const greenhouse = shared(() => startGreenhouse({}, options));
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
  expect(response.httpStatus).toBe(408);
  expect(fieldValue(response.header, "access-control-allow-origin")).toBe(shop);
});
