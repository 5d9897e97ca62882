import { describe, expect, test } from "vitest";
import { openMemoryStore, type PlantStore } from "../../src/plantstore/plants/index.ts";
import { exchangeHttp1, openHttp1 } from "../support/carriers/http1-connection.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";
import { wireFormats } from "../support/gateway/wire-format.ts";
import { expectedRecord, seenAnswer } from "./expected-answer.ts";

interface Row {
  readonly name: string;
  /** The request, byte by byte. */
  readonly sent: string;
  readonly want: { readonly httpStatus: number; readonly error: number; readonly message: string } | "deleted";
  /** Whether the connection ends with the answer, because it is not known where the next request begins. */
  readonly closes: boolean;
}

const credential = `authorization: Bearer ${tokens.good}\r\n`;
const notHttp = { httpStatus: 400, error: 3, message: "the request is not valid HTTP" } as const;
const badHost = { httpStatus: 400, error: 3, message: "the Host header is not valid" } as const;
const badTarget = { httpStatus: 400, error: 3, message: "the request target is not valid" } as const;
const badVersion = { httpStatus: 400, error: 3, message: "the HTTP version is not supported" } as const;
const badCoding = { httpStatus: 400, error: 3, message: "the transfer encoding is not supported" } as const;
const urlTooLong = { httpStatus: 414, error: 8, message: "the URL is longer than 8192 bytes" } as const;
const headerTooLarge = { httpStatus: 431, error: 8, message: "the header fields are larger than 16384 bytes" } as const;

const withLine = (line: string): string => `${line}\r\nhost: x\r\n${credential}\r\n`;
const withHost = (fields: string): string => `DELETE /plants/7 HTTP/1.1\r\n${fields}${credential}\r\n`;
const withFields = (fields: string, body = ""): string =>
  `DELETE /plants/7 HTTP/1.1\r\nhost: x\r\n${fields}\r\n${credential}\r\n${body}`;

const targetRows: readonly Row[] = [
  { name: "the origin form", sent: withLine("DELETE /plants/7 HTTP/1.1"), want: "deleted", closes: false },
  { name: "the absolute form", sent: withLine("DELETE http://x/plants/7 HTTP/1.1"), want: "deleted", closes: false },
  {
    name: "HTTP/1.0, which has no Host",
    sent: `DELETE /plants/7 HTTP/1.0\r\n${credential}\r\n`,
    want: "deleted",
    closes: true,
  },
  {
    name: "HTTP/1.0 that asks for the connection to stay",
    sent: `DELETE /plants/7 HTTP/1.0\r\nconnection: Keep-Alive\r\n${credential}\r\n`,
    want: "deleted",
    closes: false,
  },
  {
    name: "an absolute form without a host",
    sent: withLine("DELETE http:///plants/7 HTTP/1.1"),
    want: badTarget,
    closes: false,
  },
  {
    name: "an absolute form with a password",
    sent: withLine("DELETE http://u:p@x/plants/7 HTTP/1.1"),
    want: badTarget,
    closes: false,
  },
  {
    name: "an absolute form of another scheme",
    sent: withLine("DELETE ftp://x/plants/7 HTTP/1.1"),
    want: badTarget,
    closes: false,
  },
  { name: "a tunnel", sent: withLine("CONNECT x:80 HTTP/1.1"), want: badTarget, closes: true },
  { name: "a target without a slash", sent: withLine("DELETE plants/7 HTTP/1.1"), want: badTarget, closes: false },
  { name: "a space in the target", sent: withLine("DELETE /plants/7 OR HTTP/1.1"), want: notHttp, closes: true },
  { name: "a tab in the target", sent: withLine("DELETE /plants/7\t HTTP/1.1"), want: notHttp, closes: true },
  { name: "UTF-8 in the target", sent: withLine("DELETE /plants/\xd9\xa7 HTTP/1.1"), want: notHttp, closes: true },
  {
    name: "a fragment",
    sent: withLine("DELETE /plants/7#x HTTP/1.1"),
    want: { httpStatus: 400, error: 3, message: "the URL has a fragment" },
    closes: false,
  },
  { name: "a method in lower case", sent: withLine("delete /plants/7 HTTP/1.1"), want: notHttp, closes: true },
  {
    name: "a method longer than any",
    sent: withLine(`${"M".repeat(33)} /plants/7 HTTP/1.1`),
    want: notHttp,
    closes: true,
  },
  {
    name: "a method of 9,000 characters",
    sent: withLine(`${"M".repeat(9_000)} /plants/7 HTTP/1.1`),
    want: notHttp,
    closes: true,
  },
  { name: "HTTP/1.2", sent: withLine("DELETE /plants/7 HTTP/1.2"), want: badVersion, closes: true },
  { name: "HTTP/2.0 as text", sent: withLine("DELETE /plants/7 HTTP/2.0"), want: badVersion, closes: true },
  { name: "HTTP/0.9", sent: "GET /plants/7\r\n\r\n", want: badVersion, closes: true },
  { name: "a version of two digits", sent: withLine("DELETE /plants/7 HTTP/1.10"), want: notHttp, closes: true },
  { name: "a protocol in lower case", sent: withLine("DELETE /plants/7 http/1.1"), want: notHttp, closes: true },
  { name: "a space behind the version", sent: withLine("DELETE /plants/7 HTTP/1.1 "), want: notHttp, closes: true },
  { name: "two spaces before the target", sent: withLine("DELETE  /plants/7 HTTP/1.1"), want: notHttp, closes: true },
  { name: "a space before the method", sent: withLine(" DELETE /plants/7 HTTP/1.1"), want: notHttp, closes: true },
  { name: "a line feed before the method", sent: withLine("\nDELETE /plants/7 HTTP/1.1"), want: notHttp, closes: true },
  {
    name: "16 empty lines before it",
    sent: withLine(`${"\r\n".repeat(16)}DELETE /plants/7 HTTP/1.1`),
    want: "deleted",
    closes: false,
  },
  {
    name: "17 empty lines before it",
    sent: withLine(`${"\r\n".repeat(17)}DELETE /plants/7 HTTP/1.1`),
    want: notHttp,
    closes: true,
  },
  { name: "no HTTP at all", sent: "HELLO\r\n\r\n", want: notHttp, closes: true },
  { name: "bytes", sent: "\x00\x01\x02\r\n\r\n", want: notHttp, closes: true },
  {
    name: "a URL over the limit",
    sent: withLine(`DELETE /plants/${"7".repeat(9_000)} HTTP/1.1`),
    want: urlTooLong,
    closes: false,
  },
  {
    name: "a URL over the limit that does not end",
    sent: `DELETE /plants/${"7".repeat(9_000)}`,
    want: urlTooLong,
    closes: true,
  },
  {
    name: "a URL over every limit",
    sent: withLine(`DELETE /plants/${"7".repeat(30_000)} HTTP/1.1`),
    want: urlTooLong,
    closes: false,
  },
];

const hostRows: readonly Row[] = [
  { name: "an IPv6 address as Host", sent: withHost("host: [::1]:8080\r\n"), want: "deleted", closes: false },
  {
    name: "no Host",
    sent: withHost(""),
    want: { httpStatus: 400, error: 3, message: "the Host header is missing" },
    closes: false,
  },
  { name: "an empty Host", sent: withHost("host:\r\n"), want: badHost, closes: false },
  { name: "two Hosts", sent: withHost("host: a\r\nhost: b\r\n"), want: badHost, closes: false },
  { name: "the same Host twice", sent: withHost("host: a\r\nhost: a\r\n"), want: badHost, closes: false },
  { name: "a Host with a space", sent: withHost("host: a b\r\n"), want: badHost, closes: false },
  { name: "a Host with a slash", sent: withHost("host: a/b\r\n"), want: badHost, closes: false },
  { name: "a Host with a user", sent: withHost("host: u@a\r\n"), want: badHost, closes: false },
  { name: "a Host with a port that is no number", sent: withHost("host: a:b\r\n"), want: badHost, closes: false },
  { name: "a Host with half an IPv6 address", sent: withHost("host: [::1\r\n"), want: badHost, closes: false },
  { name: "a Host that is not ASCII", sent: withHost("host: \xe9\r\n"), want: badHost, closes: false },
];

const fieldRows: readonly Row[] = [
  {
    name: "an empty body in chunks",
    sent: withFields("transfer-encoding: chunked", "0\r\n\r\n"),
    want: "deleted",
    closes: false,
  },
  {
    name: "an empty body in chunks with a trailer",
    sent: withFields("transfer-encoding: chunked", "0\r\nx: y\r\n\r\n"),
    want: "deleted",
    closes: false,
  },
  { name: "a body of no bytes", sent: withFields("content-length: 0"), want: "deleted", closes: false },
  {
    name: "an upgrade that nobody offers",
    sent: withFields("connection: upgrade\r\nupgrade: websocket"),
    want: "deleted",
    closes: false,
  },
  {
    name: "a body in chunks",
    sent: withFields("transfer-encoding: chunked", "1\r\nx\r\n0\r\n\r\n"),
    want: { httpStatus: 400, error: 3, message: "this operation takes no body" },
    closes: false,
  },
  ...[
    { name: "a chunk without a size", body: "g\r\n" },
    { name: "a chunk with an empty size", body: "\r\n" },
    { name: "a chunk with a size below nothing", body: "-1\r\n" },
    { name: "a chunk with a size as in a program", body: "0x0\r\n\r\n" },
    { name: "a chunk with white space before its size", body: " 0\r\n\r\n" },
    { name: "a chunk with white space behind its size", body: "0 \r\n\r\n" },
    { name: "a chunk with a size that no number holds", body: "00000000000000\r\n\r\n" },
    { name: "a chunk whose size ends in a line feed alone", body: "0\n\r\n" },
    { name: "a chunk whose extension ends in a line feed alone", body: "0;a\n\r\n" },
    { name: "a chunk with a carriage return in its extension", body: "0;a\rb\r\n\r\n" },
    { name: "a chunk with a zero byte in its extension", body: "0;a=\0\r\n\r\n" },
    { name: "a chunk with an extension without a name", body: "1;\r\nx\r\n0\r\n\r\n" },
    { name: "a chunk with a second extension without a name", body: "1;a;\r\nx\r\n0\r\n\r\n" },
    { name: "a last chunk with an extension without a name", body: "0;\r\n\r\n" },
    { name: "a chunk with white space before the name of its extension", body: "1; a\r\nx\r\n0\r\n\r\n" },
    { name: "a chunk with white space before its extension", body: "1 ;a\r\nx\r\n0\r\n\r\n" },
    { name: "a chunk with white space around the value of its extension", body: "1;a = b\r\nx\r\n0\r\n\r\n" },
    { name: "a chunk with an extension without a value", body: "1;a=\r\nx\r\n0\r\n\r\n" },
    { name: "a chunk with an extension in quotation marks that do not end", body: '1;a="b\r\nx\r\n0\r\n\r\n' },
    { name: "a chunk with more behind a quoted extension", body: '1;a="b"c\r\nx\r\n0\r\n\r\n' },
    { name: "a length in the trailer", body: "0\r\nContent-Length: 0\r\n\r\n" },
    { name: "a transfer coding in the trailer", body: "0\r\ntransfer-encoding: chunked\r\n\r\n" },
    { name: "a chunk longer than its size", body: "1\r\nxy\r\n0\r\n\r\n" },
    { name: "a chunk that ends in a line feed alone", body: "1\r\nx\n0\r\n\r\n" },
    { name: "a trailer that is no field", body: "0\r\nx\r\n\r\n" },
    { name: "a trailer with a space before the colon", body: "0\r\nx : y\r\n\r\n" },
    { name: "a trailer that ends in a line feed alone", body: "0\r\nx: y\n\r\n" },
    { name: "a trailer section that ends in a line feed alone", body: "0\r\n\n" },
    { name: "a trailer section over the limit", body: `0\r\nx: ${"y".repeat(17_000)}\r\n\r\n` },
  ].map(({ name, body }) => ({
    name,
    sent: withFields("transfer-encoding: chunked", body),
    want: notHttp,
    closes: true,
  })),
  {
    name: "chunk extensions over the limit",
    sent: withFields("transfer-encoding: chunked", `0;${"x".repeat(17_000)}\r\n\r\n`),
    want: { httpStatus: 400, error: 8, message: "the chunk extensions are too large" },
    closes: true,
  },
  {
    name: "an empty body in chunks with an extension",
    sent: withFields("transfer-encoding: chunked", '0;a;b="c \\" \xe9";d=e\r\n\r\n'),
    want: "deleted",
    closes: false,
  },
  {
    name: "an empty body in chunks in capitals",
    sent: withFields("Transfer-Encoding: CHUNKED", "000\r\n\r\n"),
    want: "deleted",
    closes: false,
  },
  // RFC 9112 §6.1: the framing of such a message is faulty.
  ...["", "connection: keep-alive\r\n"].map((fields) => ({
    name: `a body in chunks over HTTP/1.0, ${fields === "" ? "which closes" : "which would stay"}`,
    sent: `DELETE /plants/7 HTTP/1.0\r\n${fields}${credential}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    want: { httpStatus: 400, error: 3, message: "HTTP/1.0 has no transfer encoding" },
    closes: true,
  })),
  {
    name: "a transfer coding that only ends in chunked",
    sent: withFields("transfer-encoding: xchunked", "0\r\n\r\n"),
    want: badCoding,
    closes: true,
  },
  {
    name: "a compressed transfer",
    sent: withFields("transfer-encoding: gzip, chunked", "0\r\n\r\n"),
    want: badCoding,
    closes: true,
  },
  {
    name: "chunks and a length",
    sent: withFields("content-length: 5\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
    want: notHttp,
    closes: true,
  },
  {
    name: "chunks twice",
    sent: withFields("transfer-encoding: chunked\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
    want: badCoding,
    closes: true,
  },
  {
    name: "chunks behind a comma",
    sent: withFields("transfer-encoding: ,chunked", "0\r\n\r\n"),
    want: badCoding,
    closes: true,
  },
  {
    name: "a transfer encoding with a byte of white space that is none",
    sent: withFields("transfer-encoding: chunked\xa0", "0\r\n\r\n"),
    want: badCoding,
    closes: true,
  },
  {
    name: "a transfer encoding with a control character",
    sent: withFields("transfer-encoding: \x0bchunked", "0\r\n\r\n"),
    want: notHttp,
    closes: true,
  },
  {
    name: "the same length twice",
    sent: withFields("content-length: 0\r\ncontent-length: 0"),
    want: notHttp,
    closes: true,
  },
  { name: "a list of lengths", sent: withFields("content-length: 0, 0"), want: notHttp, closes: true },
  { name: "an empty length", sent: withFields("content-length:"), want: notHttp, closes: true },
  { name: "a length in another base", sent: withFields("content-length: 0x0"), want: notHttp, closes: true },
  { name: "a length with a blank in it", sent: withFields("content-length: 0 0"), want: notHttp, closes: true },
  { name: "a length in other digits", sent: withFields("content-length: \xb2"), want: notHttp, closes: true },
  { name: "two lengths", sent: withFields("content-length: 0\r\ncontent-length: 1"), want: notHttp, closes: true },
  { name: "a length with a sign", sent: withFields("content-length: +0"), want: notHttp, closes: true },
  {
    name: "a length beyond 64 bits",
    sent: withFields("content-length: 99999999999999999999"),
    want: notHttp,
    closes: true,
  },
  {
    name: "a body over the limit, before it is sent",
    sent: withFields("content-length: 99999999999"),
    want: { httpStatus: 400, error: 8, message: "message is larger than 65536 bytes" },
    closes: true,
  },
  { name: "a space before the colon", sent: withFields("foo : x"), want: notHttp, closes: true },
  { name: "a field without a colon", sent: withFields("foo"), want: notHttp, closes: true },
  { name: "a folded field", sent: withFields("foo: a\r\n b"), want: notHttp, closes: true },
  {
    name: "a first field that is folded",
    sent: withLine("DELETE /plants/7 HTTP/1.1\r\n x: y"),
    want: notHttp,
    closes: true,
  },
  { name: "a field that is folded with a tab", sent: withFields("foo: a\r\n\tb"), want: notHttp, closes: true },
  { name: "a field without a name", sent: withFields(": x"), want: notHttp, closes: true },
  { name: "a field with a space in its name", sent: withFields("fo o: x"), want: notHttp, closes: true },
  { name: "a field with a byte beyond ASCII in its name", sent: withFields("fo\xf6: x"), want: notHttp, closes: true },
  { name: "a carriage return in a field", sent: withFields("foo: a\rb: c"), want: notHttp, closes: true },
  { name: "a field that ends in a line feed alone", sent: withFields("foo: a\nb: c"), want: notHttp, closes: true },
  { name: "a field that ends in two carriage returns", sent: withFields("foo: a\r"), want: notHttp, closes: true },
  { name: "a field with DEL in it", sent: withFields("foo: a\x7fb"), want: notHttp, closes: true },
  { name: "a field of other bytes", sent: withFields("foo: \xe9\x80\t!"), want: "deleted", closes: false },
  { name: "a field without a value", sent: withFields("foo:"), want: "deleted", closes: false },
  { name: "a field without the space", sent: withFields("foo:bar"), want: "deleted", closes: false },
  { name: "the wish to close", sent: withFields("connection: foo , Close"), want: "deleted", closes: true },
  { name: "a zero byte in a field", sent: withFields("foo: a\0b"), want: notHttp, closes: true },
  {
    name: "lines that end in a line feed alone",
    sent: withLine("DELETE /plants/7 HTTP/1.1").replaceAll("\r", ""),
    want: notHttp,
    closes: true,
  },
  {
    name: "an expectation that nobody can meet",
    sent: withFields("expect: the-moon"),
    want: { httpStatus: 400, error: 3, message: "the expectation cannot be met" },
    closes: true,
  },
  {
    name: "a field over the limit",
    sent: withFields(`foo: ${"x".repeat(17_000)}`),
    want: headerTooLarge,
    closes: true,
  },
  {
    name: "many fields over the limit",
    sent: withFields(Array(9_000).fill("a: b").join("\r\n")),
    want: headerTooLarge,
    closes: true,
  },
];

describe.concurrent("over HTTP/1.1, the server", () => {
  test.each([...targetRows, ...hostRows, ...fieldRows])("answers $name", async ({ sent, want, closes }) => {
    const plants = new Set([7n, 8n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants) });
    using connection = await openHttp1(server.address);
    connection.write(sent);
    const answer = await connection.readAnswer();
    if (want === "deleted") expect(answer.httpStatus).toBe(204);
    else expect(seenAnswer(wireFormats.rest, answer)).toStrictEqual(expectedRecord(want.httpStatus, want));
    expect(plants.has(7n)).toBe(want !== "deleted");

    if (closes) {
      expect(await connection.atEnd()).toBe(true);
      return;
    }
    connection.write(`DELETE /plants/8 HTTP/1.1\r\nhost: x\r\n${credential}\r\n`);
    expect((await connection.readAnswer()).httpStatus).toBe(204);
  });

  test("tells a client to send its body only when it is wanted", async () => {
    await using server = await startPlantServer();
    using connection = await openHttp1(server.address);
    const fields = "host: x\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 10\r\n";
    const line = "POST /plantstore.v1.PlantService/DeletePlant HTTP/1.1\r\n";

    connection.write(`${line}${fields}${credential}\r\n`);
    connection.write('{"id":"7"}');
    expect(await connection.readAnswer()).toMatchObject({ interim: [100], httpStatus: 404 });

    // Without a credential the body is not wanted, and it is not known where the next request begins.
    connection.write(`${line}${fields}\r\n`);
    expect(await connection.readAnswer()).toMatchObject({ interim: [], httpStatus: 401 });
    expect(await connection.atEnd()).toBe(true);
  });

  test("answers requests that are sent at once in their order", async () => {
    const plants = new Set([1n, 2n, 3n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants) });
    using connection = await openHttp1(server.address);
    for (const id of [1, 4, 2, 5, 3])
      connection.write(`DELETE /plants/${String(id)} HTTP/1.1\r\nhost: x\r\n${credential}\r\n`);
    const statuses: number[] = [];
    while (statuses.length < 5) statuses.push((await connection.readAnswer()).httpStatus);
    expect(statuses).toStrictEqual([204, 400, 204, 400, 204]);
  });

  const behind = [
    { name: "no HTTP", sent: "HELLO\r\n\r\n", httpStatus: 400 },
    {
      name: "a header over the limit",
      sent: withLine(`DELETE /plants/8 HTTP/1.1\r\nfoo: ${"a".repeat(20_000)}`),
      httpStatus: 431,
    },
    { name: "bytes that no length announced", sent: "{}", httpStatus: 400 },
    { name: "a tunnel", sent: withLine("CONNECT x:80 HTTP/1.1"), httpStatus: 400 },
  ];
  test.each(behind)("answers a deletion that is under way although $name follows", async ({ sent, httpStatus }) => {
    const plants = openMemoryStore(new Set([7n]));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const store: PlantStore = { ...plants, delete: (id, call) => released.then(() => plants.delete(id, call)) };
    await using server = await startPlantServer({ store });
    using connection = await openHttp1(server.address);
    connection.write(withLine("DELETE /plants/7 HTTP/1.1") + sent);
    // The probe's answer comes after the server has read what is wrong.
    await exchangeHttp1(server.address, { httpMethod: "GET", path: "/livez", header: [] });
    release();

    expect((await connection.readAnswer()).httpStatus).toBe(204);
    const last = await connection.readAnswer();
    expect(last.httpStatus).toBe(httpStatus);
    expect(last.head).toMatch(/^connection: close$/im);
    expect(await connection.atEnd()).toBe(true);
  });

  test("reads a request that comes byte by byte", async () => {
    const plants = new Set([7n]);
    await using server = await startPlantServer({ store: openMemoryStore(plants) });
    using connection = await openHttp1(server.address);
    for (const byte of withLine("DELETE /plants/7 HTTP/1.1")) {
      connection.write(byte);
      await new Promise(setImmediate);
    }
    expect((await connection.readAnswer()).httpStatus).toBe(204);
  });

  test("answers a client that has ended its side", async () => {
    await using server = await startPlantServer({ store: openMemoryStore(new Set([7n])) });
    using connection = await openHttp1(server.address);
    connection.socket.end(withLine("DELETE /plants/7 HTTP/1.1"));
    expect((await connection.readAnswer()).httpStatus).toBe(204);
  });
});
