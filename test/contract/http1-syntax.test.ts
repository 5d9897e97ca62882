import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import type { PlantStore } from "../../src/service/index.ts";
import { exchangeHttp1, heldRows, openHttp1, usesHandler, wireFormats } from "@protoport/testing";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";
import { expectedRecord, actualResponse } from "./expected-response.ts";

type Refusal = { readonly httpStatus: number; readonly error: number; readonly message: string };

interface TestCase {
  readonly name: string;
  readonly sent: string;
  readonly want: Refusal | "deleted";
  /** Whether the connection closes after the response, because the beginning of the next request is unknown. */
  readonly closes: boolean;
}

/** Returns test cases, one per request, that share a response after which the connection stays open. */
const staysOpen = (want: TestCase["want"], requests: Readonly<Record<string, string>>): readonly TestCase[] =>
  Object.entries(requests).map(([name, sent]) => ({ name, sent, want, closes: false }));

/** Returns test cases, one per request, that share a response after which the connection closes. */
function closes(want: TestCase["want"], requests: Readonly<Record<string, string>>): readonly TestCase[] {
  return Object.entries(requests).map(([name, sent]) => ({ name, sent, want, closes: true }));
}

const credential = `authorization: Bearer ${tokens.good}\r\n`;
const refusal = (message: string): Refusal => ({ httpStatus: 400, error: 3, message });
const notHttp = refusal("the request is not valid HTTP");
const badHost = refusal("the Host header is not valid");
const badTarget = refusal("the request target is not valid");
const badVersion = refusal("the HTTP version is not supported");
const badCoding = refusal("the Transfer-Encoding header is not valid");
const unknownCoding: Refusal = { httpStatus: 400, error: 12, message: "the transfer encoding is not supported" };
const codingOfHttp10 = refusal("Transfer-Encoding is not allowed in HTTP/1.0");
const urlTooLong: Refusal = { httpStatus: 414, error: 8, message: "the URL is longer than 8192 bytes" };
const headerTooLarge: Refusal = { httpStatus: 431, error: 8, message: "the header fields are larger than 16384 bytes" };
const withLine = (line: string): string => `${line}\r\nhost: x\r\n${credential}\r\n`;
const withHost = (fields: string): string => `DELETE /plants/7 HTTP/1.1\r\n${fields}${credential}\r\n`;
const withFields = (fields: string, body = ""): string =>
  `DELETE /plants/7 HTTP/1.1\r\nhost: x\r\n${fields}\r\n${credential}\r\n${body}`;
const inChunks = (body: string): string => withFields("transfer-encoding: chunked", body);
const ofHttp10 = (fields: string, body = "") => `DELETE /plants/7 HTTP/1.0\r\n${fields}${credential}\r\n${body}`;

const targetCases: readonly TestCase[] = [
  ...staysOpen("deleted", {
    "the origin form": withLine("DELETE /plants/7 HTTP/1.1"),
    "the absolute form": withLine("DELETE http://x/plants/7 HTTP/1.1"),
    "HTTP/1.0 with connection: keep-alive": ofHttp10("connection: Keep-Alive\r\n"),
    "a later minor version": withLine("DELETE /plants/7 HTTP/1.2"),
    "the latest minor version": withLine("DELETE /plants/7 HTTP/1.9"),
    "16 empty lines before the request": withLine(`${"\r\n".repeat(16)}DELETE /plants/7 HTTP/1.1`),
  }),
  ...closes("deleted", {
    "HTTP/1.0 without Host": ofHttp10(""),
    "an ignored expectation of HTTP/1.0": ofHttp10("expect: the-moon\r\n"),
  }),
  ...staysOpen(badTarget, {
    "an absolute form without a host": withLine("DELETE http:///plants/7 HTTP/1.1"),
    "an absolute form with a password": withLine("DELETE http://u:p@x/plants/7 HTTP/1.1"),
    "an absolute form of another scheme": withLine("DELETE ftp://x/plants/7 HTTP/1.1"),
    "a target without a slash": withLine("DELETE plants/7 HTTP/1.1"),
    "an asterisk without OPTIONS": withLine("DELETE * HTTP/1.1"),
  }),
  ...closes(badTarget, { CONNECT: withLine("CONNECT x:80 HTTP/1.1") }),
  ...staysOpen(refusal("the URL must not have a fragment"), { "a fragment": withLine("DELETE /plants/7#x HTTP/1.1") }),
  ...closes(badVersion, {
    "HTTP/2.0 as text": withLine("DELETE /plants/7 HTTP/2.0"),
    "HTTP/0.9": "GET /plants/7\r\n\r\n",
  }),
  ...closes(notHttp, {
    "a space in the target": withLine("DELETE /plants/7 OR HTTP/1.1"),
    "a tab in the target": withLine("DELETE /plants/7\t HTTP/1.1"),
    "UTF-8 in the target": withLine("DELETE /plants/\xd9\xa7 HTTP/1.1"),
    "a method in lower case": withLine("delete /plants/7 HTTP/1.1"),
    "a version of two digits": withLine("DELETE /plants/7 HTTP/1.10"),
    "a protocol in lower case": withLine("DELETE /plants/7 http/1.1"),
    "a space after the version": withLine("DELETE /plants/7 HTTP/1.1 "),
    "two spaces before the target": withLine("DELETE  /plants/7 HTTP/1.1"),
    "a space before the method": withLine(" DELETE /plants/7 HTTP/1.1"),
    "a line feed before the method": withLine("\nDELETE /plants/7 HTTP/1.1"),
    "17 empty lines before the request": withLine(`${"\r\n".repeat(17)}DELETE /plants/7 HTTP/1.1`),
    "bytes that are not HTTP": "HELLO\r\n\r\n",
    bytes: "\x00\x01\x02\r\n\r\n",
  }),
  ...closes(
    { httpStatus: 501, error: 12, message: "the method is longer than 32 characters" },
    {
      "a method of 33 characters": withLine(`${"M".repeat(33)} /plants/7 HTTP/1.1`),
      "a method of 9,000 characters": withLine(`${"M".repeat(9_000)} /plants/7 HTTP/1.1`),
      "an incomplete method of 100,000 characters": "M".repeat(100_000),
    },
  ),
  ...staysOpen(urlTooLong, {
    "a URL over the limit": withLine(`DELETE /plants/${"7".repeat(9_000)} HTTP/1.1`),
    "a URL over every limit": withLine(`DELETE /plants/${"7".repeat(30_000)} HTTP/1.1`),
  }),
  ...closes(urlTooLong, { "an incomplete URL over the limit": `DELETE /plants/${"7".repeat(9_000)}` }),
];

const hostCases: readonly TestCase[] = [
  ...staysOpen("deleted", { "an IPv6 address as Host": withHost("host: [::1]:8080\r\n") }),
  ...staysOpen(refusal("the Host header is missing"), { "no Host": withHost("") }),
  ...staysOpen(badHost, {
    "an empty Host": withHost("host:\r\n"),
    "two Hosts": withHost("host: a\r\nhost: b\r\n"),
    "the same Host twice": withHost("host: a\r\nhost: a\r\n"),
    "a Host with a space": withHost("host: a b\r\n"),
    "a Host with a slash": withHost("host: a/b\r\n"),
    "a Host with a user": withHost("host: u@a\r\n"),
    "a Host with an invalid port": withHost("host: a:b\r\n"),
    "a Host with a truncated IPv6 address": withHost("host: [::1\r\n"),
    "a Host that is not ASCII": withHost("host: \xe9\r\n"),
  }),
];

const spacedExtensions: Readonly<Record<string, string>> = {
  "a chunk with white space before the name of its extension": inChunks("0; a\r\n\r\n"),
  "a chunk with white space before its extension": inChunks("0 \t;a\r\n\r\n"),
  "a chunk with white space around the value of its extension": inChunks('0;a\t=  b; c = "d" ;e\r\n\r\n'),
};

const bodyCases: readonly TestCase[] = [
  ...staysOpen("deleted", {
    "an empty body": withFields("content-length: 0"),
    "an empty chunked body": inChunks("0\r\n\r\n"),
    "an empty chunked body with a trailer": inChunks("0\r\nx: y\r\n\r\n"),
    "an empty chunked body with an extension": inChunks('0;a;b="c \\" \xe9";d=e\r\n\r\n'),
    "chunk extensions of the maximum size": inChunks(`0;${"x".repeat(16 * 1024 - 1)}\r\n\r\n`),
    "an empty chunked body with the coding in capitals": withFields("Transfer-Encoding: CHUNKED", "000\r\n\r\n"),
  }),
  // Node's parser refuses what recipients must accept (RFC 9112 §7.1.1).
  ...(usesHandler ? closes(notHttp, spacedExtensions) : staysOpen("deleted", spacedExtensions)),
  ...staysOpen(refusal("this operation does not accept a body"), { "a chunked body": inChunks("1\r\nx\r\n0\r\n\r\n") }),
  ...closes(notHttp, {
    "a chunk without a size": inChunks("g\r\n"),
    "a chunk with an empty size": inChunks("\r\n"),
    "a chunk with a negative size": inChunks("-1\r\n"),
    "a chunk with a hexadecimal prefix in its size": inChunks("0x0\r\n\r\n"),
    "a chunk with white space before its size": inChunks(" 0\r\n\r\n"),
    "a chunk with white space after its size": inChunks("0 \r\n\r\n"),
    "a chunk with a size of 14 digits": inChunks("00000000000000\r\n\r\n"),
    "a chunk whose size ends in a bare line feed": inChunks("0\n\r\n"),
    "a chunk whose extension ends in a bare line feed": inChunks("0;a\n\r\n"),
    "a chunk with a carriage return in its extension": inChunks("0;a\rb\r\n\r\n"),
    "a chunk with a zero byte in its extension": inChunks("0;a=\0\r\n\r\n"),
    "a chunk with an extension without a name": inChunks("1;\r\nx\r\n0\r\n\r\n"),
    "a chunk with a second extension without a name": inChunks("1;a;\r\nx\r\n0\r\n\r\n"),
    "a last chunk with an extension without a name": inChunks("0;\r\n\r\n"),
    "a chunk with white space after its extension": inChunks("0;a \r\n\r\n"),
    "a chunk with a no-break space before its extension": inChunks("0;\xa0a\r\n\r\n"),
    "a chunk with a form feed before its extension": inChunks("0;\x0ca\r\n\r\n"),
    "a chunk with a bare line feed before its extension": inChunks("0;\na\r\n\r\n"),
    "a chunk with a bare carriage return before its extension": inChunks("0;\ra\r\n\r\n"),
    "a chunk with a folded extension": inChunks("0;\r\n a\r\n\r\n"),
    "a chunk with an extension without a value": inChunks("1;a=\r\nx\r\n0\r\n\r\n"),
    "a chunk with an unterminated quoted extension": inChunks('1;a="b\r\nx\r\n0\r\n\r\n'),
    "a chunk with text after a quoted extension": inChunks('1;a="b"c\r\nx\r\n0\r\n\r\n'),
    "a length in the trailer": inChunks("0\r\nContent-Length: 0\r\n\r\n"),
    "a transfer coding in the trailer": inChunks("0\r\ntransfer-encoding: chunked\r\n\r\n"),
    "a chunk longer than its size": inChunks("1\r\nxy\r\n0\r\n\r\n"),
    "a chunk that ends in a bare line feed": inChunks("1\r\nx\n0\r\n\r\n"),
    "an invalid trailer field": inChunks("0\r\nx\r\n\r\n"),
    "a trailer with a space before the colon": inChunks("0\r\nx : y\r\n\r\n"),
    "a trailer that ends in a bare line feed": inChunks("0\r\nx: y\n\r\n"),
    "a trailer section that ends in a bare line feed": inChunks("0\r\n\n"),
    "a trailer section over the limit": inChunks(`0\r\nx: ${"y".repeat(17_000)}\r\n\r\n`),
    "an incomplete trailer section over the limit": inChunks(`0\r\nx: ${"y".repeat(17_000)}`),
    "Transfer-Encoding and Content-Length": withFields("content-length: 5\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
    "a transfer encoding with a control character": withFields("transfer-encoding: \x0bchunked", "0\r\n\r\n"),
    "the same length twice": withFields("content-length: 0\r\ncontent-length: 0"),
    "a list of lengths": withFields("content-length: 0, 0"),
    "an empty length": withFields("content-length:"),
    "a length in another base": withFields("content-length: 0x0"),
    "a length with a space in it": withFields("content-length: 0 0"),
    "a length in non-ASCII digits": withFields("content-length: \xb2"),
    "two lengths": withFields("content-length: 0\r\ncontent-length: 1"),
    "a length with a sign": withFields("content-length: +0"),
    "a length beyond 64 bits": withFields("content-length: 99999999999999999999"),
  }),
  ...closes(
    { httpStatus: 400, error: 8, message: "the chunk extensions are too large" },
    {
      "chunk extensions over the limit": inChunks(`0;${"x".repeat(17_000)}\r\n\r\n`),
      "several chunk extensions over the limit in total": inChunks(`1;${"x".repeat(9_000)}\r\nx\r\n`.repeat(2)),
    },
  ),
  // RFC 9112 §6.1 calls this framing faulty.
  ...closes(codingOfHttp10, {
    "a chunked body over HTTP/1.0": ofHttp10("transfer-encoding: chunked\r\n", "0\r\n\r\n"),
    "a chunked body over HTTP/1.0 with keep-alive": ofHttp10(
      "connection: keep-alive\r\ntransfer-encoding: chunked\r\n",
      "0\r\n\r\n",
    ),
  }),
  ...closes(unknownCoding, {
    "the transfer coding gzip": withFields("transfer-encoding: gzip, chunked", "0\r\n\r\n"),
    "two unknown transfer codings": withFields(
      "transfer-encoding: x;a=b\r\ntransfer-encoding: y, chunked",
      "0\r\n\r\n",
    ),
  }),
  ...closes(badCoding, {
    "an unknown transfer coding that ends in chunked": withFields("transfer-encoding: xchunked", "0\r\n\r\n"),
    "an unknown transfer coding after chunked twice": withFields(
      "transfer-encoding: chunked, gzip, chunked",
      "0\r\n\r\n",
    ),
    "the transfer coding chunked twice": withFields(
      "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
      "0\r\n\r\n",
    ),
    "the transfer coding chunked after a comma": withFields("transfer-encoding: ,chunked", "0\r\n\r\n"),
    "a no-break space after chunked": withFields("transfer-encoding: chunked\xa0", "0\r\n\r\n"),
  }),
  ...closes(
    { httpStatus: 400, error: 8, message: "the message is larger than 65536 bytes" },
    { "a declared body over the limit": withFields("content-length: 99999999999") },
  ),
];

const fieldCases: readonly TestCase[] = [
  // After an unsupported upgrade, Node's parser cannot find the next request.
  ...(usesHandler ? closes : staysOpen)("deleted", {
    "an unsupported upgrade": withFields("connection: upgrade\r\nupgrade: websocket"),
  }),
  ...staysOpen("deleted", {
    "a field with non-ASCII bytes": withFields("foo: \xe9\x80\t!"),
    "a field without a value": withFields("foo:"),
    "a field without a space after the colon": withFields("foo:bar"),
  }),
  ...closes("deleted", { "connection: close": withFields("connection: foo , Close") }),
  ...closes(notHttp, {
    "a space before the colon": withFields("foo : x"),
    "a field without a colon": withFields("foo"),
    "a folded field": withFields("foo: a\r\n b"),
    "a folded first field": withLine("DELETE /plants/7 HTTP/1.1\r\n x: y"),
    "a field folded with a tab": withFields("foo: a\r\n\tb"),
    "a field without a name": withFields(": x"),
    "a field with a space in its name": withFields("fo o: x"),
    "a field with a byte beyond ASCII in its name": withFields("fo\xf6: x"),
    "a carriage return in a field": withFields("foo: a\rb: c"),
    "a field that ends in a bare line feed": withFields("foo: a\nb: c"),
    "a field that ends in two carriage returns": withFields("foo: a\r"),
    "a field with DEL": withFields("foo: a\x7fb"),
    "a zero byte in a field": withFields("foo: a\0b"),
    "lines that end in bare line feeds": withLine("DELETE /plants/7 HTTP/1.1").replaceAll("\r", ""),
  }),
  ...closes(refusal("the Expect header is not supported"), {
    "an unknown expectation": withFields("expect: the-moon"),
  }),
  ...closes(headerTooLarge, {
    "a field over the limit": withFields(`foo: ${"x".repeat(17_000)}`),
    "many fields over the limit": withFields(Array(9_000).fill("a: b").join("\r\n")),
  }),
];

/** Requests that a server of node accepts, never responds to, or keeps the connection open after. */
// oxfmt-ignore
const differentOnNode: readonly string[] = [
  "two spaces before the target", "a line feed before the method", "17 empty lines before the request", "CONNECT",
  "a later minor version", "the latest minor version", "HTTP/0.9", "HTTP/2.0 as text",
  "HTTP/1.0 with connection: keep-alive", "an incomplete URL over the limit", "a field over the limit",
  "an unknown expectation", "a chunk with a size of 14 digits", "a chunk with an extension without a value",
  "several chunk extensions over the limit in total", "a trailer section over the limit",
  "an incomplete trailer section over the limit",
];
const testCases = heldRows([...targetCases, ...hostCases, ...bodyCases, ...fieldCases], differentOnNode);

describe.concurrent("a server with HTTP/1.1", () => {
  test.each(testCases)("responds to $name as specified", async (testCase) => {
    const { sent, want } = testCase;
    const plants = new Set([7n, 8n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants) });
    using connection = await openHttp1(server.address);
    connection.write(sent);
    const response = await connection.readResponse();
    // Node's parser responds to the requests that it refuses without an error record.
    const isRefusedByNode = usesHandler && want !== "deleted" && response.body.byteLength === 0;
    if (want === "deleted") expect(response.httpStatus).toBe(204);
    else if (isRefusedByNode) expect([400, 413, 431]).toContain(response.httpStatus);
    else expect(actualResponse(wireFormats.rest, response)).toStrictEqual(expectedRecord(want.httpStatus, want));
    expect(plants.has(7n)).toBe(want !== "deleted");

    if (testCase.closes || isRefusedByNode) {
      expect(await connection.atEnd()).toBe(true);
      return;
    }
    connection.write(`DELETE /plants/8 HTTP/1.1\r\nhost: x\r\n${credential}\r\n`);
    expect((await connection.readResponse()).httpStatus).toBe(204);
  });

  // oxfmt-ignore
  const followingBytes = [
    { name: "invalid HTTP", sent: "HELLO\r\n\r\n", httpStatus: 400 },
    { name: "a header over the limit", sent: withLine(`DELETE /plants/8 HTTP/1.1\r\nfoo: ${"a".repeat(20_000)}`),
      httpStatus: 431 },
    { name: "an undeclared body", sent: "{}", httpStatus: 400 },
    { name: "a digit", sent: "7", httpStatus: 400 },
    { name: "CONNECT", sent: withLine("CONNECT x:80 HTTP/1.1"), httpStatus: 400 },
  ];
  // A server of node:http closes the connection without the response to the earlier request.
  test.each(usesHandler ? [] : followingBytes)(
    "completes a running deletion if $name follows its request",
    async ({ sent, httpStatus }) => {
      const plants = openMemoryStore(new Set([7n]));
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const store: PlantStore = { ...plants, delete: (id, call) => released.then(() => plants.delete(id, call)) };
      await using server = await startPlantServer({ store });
      using connection = await openHttp1(server.address);
      connection.write(withLine("DELETE /plants/7 HTTP/1.1") + sent);
      // The probe gets its response after the server has read the invalid bytes.
      await exchangeHttp1(server.address, { httpMethod: "GET", path: "/livez", header: [] });
      release();
      expect((await connection.readResponse()).httpStatus).toBe(204);
      const last = await connection.readResponse();
      expect(last.httpStatus).toBe(httpStatus);
      expect(last.head).toMatch(/^connection: close$/im);
      expect(await connection.atEnd()).toBe(true);
    },
  );

  test("reads a request that arrives byte by byte", async () => {
    const plants = new Set([7n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants) });
    using connection = await openHttp1(server.address);
    for (const byte of withLine("DELETE /plants/7 HTTP/1.1")) {
      connection.write(byte);
      await new Promise(setImmediate);
    }
    expect((await connection.readResponse()).httpStatus).toBe(204);
  });
});
