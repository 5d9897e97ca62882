// Validates the entry as HttpArena's scripts/validate.sh does: npx node protoport/bench/arena/validate.ts
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { within } from "../../testing/src/deadline.ts";
import { decodeEnvelopes, encodeEnvelope } from "../../testing/src/gateway/envelope.ts";
import { createCertificate } from "../../testing/src/http/certificate.ts";
import { type Address, type Field, fieldValue, type HttpResponse } from "../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../testing/src/http/http1-connection.ts";
import { openHttp2 } from "../../testing/src/http/http2-connection.ts";
import { projectFolder } from "../../testing/src/process/child-program.ts";
import { type CommandLine, startNode } from "../../testing/src/process/command-line.ts";
import { freePort } from "../../testing/src/process/free-port.ts";
import { createTempFolder } from "../../testing/src/process/temp-folder.ts";

/** An item in the data set. */
interface SourceItem {
  readonly price: number;
  readonly quantity: number;
  readonly [other: string]: unknown;
}

/** The running entry, and the data that it serves. Dispose of the entry with `await using`. */
export interface Entry extends AsyncDisposable {
  readonly plain: Address;
  readonly secure: Address;
  readonly cert: string;
  readonly items: readonly SourceItem[];
  readonly server: CommandLine;
}

/** Returns 50 items as in HttpArena's data set. Some items have fields that are zero, false or empty. */
function createItems(): SourceItem[] {
  return Array.from({ length: 50 }, (_, index) => ({
    id: index + 1,
    name: `Item "${String(index)}"`,
    category: "tools",
    price: randomBetween(0, 500),
    quantity: index % 7,
    active: index % 2 === 0,
    tags: ["new", "eco", "fast"].slice(0, index % 4),
    rating: { score: index % 5, count: randomBetween(0, 500) },
  }));
}

/** Returns two free loopback ports, for connections without and with TLS. */
export async function freePorts(): Promise<[plain: number, secure: number]> {
  return [await freePort(), await freePort()];
}

/** Starts the entry with its image's command, a new certificate and a new data set, and waits until it listens. */
export async function startEntry([plain, secure]: readonly [plain: number, secure: number]): Promise<Entry> {
  const [, command = ""] = /^CMD (.*)$/m.exec(readFileSync(join(import.meta.dirname, "Dockerfile"), "utf8")) ?? [];
  const [, ...args]: string[] = JSON.parse(command);
  const items = createItems();
  const { cert, key } = createCertificate("localhost");
  await using resources = new AsyncDisposableStack();
  const folder = resources.use(createTempFolder());
  const environment = {
    HOST: "127.0.0.1",
    PORT: String(plain),
    TLS_PORT: String(secure),
    TLS_CERT: folder.write("server.crt", cert),
    TLS_KEY: folder.write("server.key", key),
    DATASET: folder.write("dataset.json", JSON.stringify(items)),
  };
  const server = resources.use(startNode(args, import.meta.dirname, environment));
  await server.find(/processes listen on/);
  const kept = resources.move();
  const [address, stop] = ["127.0.0.1", () => kept.disposeAsync()];
  const addresses = { plain: { address, port: plain }, secure: { address, port: secure } };
  return { ...addresses, cert, items, server, [Symbol.asyncDispose]: stop };
}

function randomBetween(least: number, most: number): number {
  return least + Math.floor(Math.random() * (most - least + 1));
}

/** Returns the options with which a TLS client trusts the entry. */
function trusting({ cert }: Entry): ConnectionOptions {
  return { ca: cert, servername: "localhost" };
}

async function get(entry: Entry, path: string, header: readonly Field[] = [], tls = false): Promise<HttpResponse> {
  using connection = await openHttp1(tls ? entry.secure : entry.plain, tls ? trusting(entry) : undefined);
  connection.request({ httpMethod: "GET", path, header });
  return await connection.readResponse();
}

/** Checks the response from /baseline11. */
function checkSum({ httpStatus, header, body }: HttpResponse, sum: number): void {
  assert.deepEqual([httpStatus, body.toString()], [200, String(sum)]);
  assert.match(fieldValue(header, "content-type") ?? "", /^text\/plain(?:;|$)/);
}

async function checkGet(entry: Entry): Promise<void> {
  const [a, b] = [randomBetween(100, 999), randomBetween(100, 999)];
  checkSum(await get(entry, `/baseline11?a=${String(a)}&b=${String(b)}`), a + b);
}

/** Posts two different bodies, because a cache would not distinguish them. */
async function checkPosts({ plain }: Entry, ...header: readonly Field[]): Promise<void> {
  using connection = await openHttp1(plain);
  const first = randomBetween(100, 999);
  for (const added of [first, first + 1]) {
    const isChunked = fieldValue(header, "transfer-encoding") !== undefined;
    const body = Buffer.from(isChunked ? `3\r\n${String(added)}\r\n0\r\n\r\n` : String(added));
    connection.request({ httpMethod: "POST", path: "/baseline11?a=13&b=42", header, body });
    checkSum(await connection.readResponse(), 55 + added);
  }
}

/** Sends requests in two parts, split at every byte. */
async function checkFragments({ plain }: Entry): Promise<void> {
  const target = "/baseline11?a=13&b=42 HTTP/1.1\r\nHost: localhost\r\n";
  const requests = [
    { request: `GET ${target}\r\n`, sum: 55 },
    { request: `POST ${target}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n20`, sum: 75 },
    { request: `POST ${target}content-length: 2\r\n\r\n20`, sum: 75 },
    { request: `POST ${target}Transfer-Encoding: chunked\r\n\r\n1\r\n2\r\n1\r\n0\r\n0\r\n\r\n`, sum: 75 },
  ];
  for (const { request, sum } of requests) {
    const checkSplit = async (_: string, at: number): Promise<void> => {
      using connection = await openHttp1(plain);
      connection.write(request.slice(0, at));
      await pause(30);
      connection.write(request.slice(at));
      checkSum(await connection.readResponse(), sum);
    };
    await Promise.all(Array.from(request, checkSplit));
  }
}

/** Opens a new connection after ten requests. */
async function checkShortConnections({ plain }: Entry): Promise<void> {
  for (let connections = 0; connections < 20; connections += 1) {
    using connection = await openHttp1(plain);
    for (let sent = 0; sent < 10; sent += 1) {
      connection.request({ httpMethod: "GET", path: `/baseline11?a=${String(sent)}&b=42`, header: [] });
      checkSum(await connection.readResponse(), sent + 42);
    }
  }
}

/**
 * Checks the items from /json/{count}. The response must be compressed if, and only if, the client accepts compression.
 */
async function checkItems(
  entry: Entry,
  { tls = false, accepted }: { tls?: boolean; accepted?: string },
): Promise<void> {
  const header: Field[] = accepted === undefined ? [] : [["accept-encoding", accepted]];
  for (const count of [50, randomBetween(25, 50), randomBetween(25, 50), randomBetween(25, 50), 1]) {
    const m = randomBetween(2, 97);
    const response = await get(entry, `/json/${String(count)}?m=${String(m)}`, header, tls);
    assert.deepEqual([response.httpStatus, fieldValue(response.header, "content-type")], [200, "application/json"]);
    const coding = fieldValue(response.header, "content-encoding");
    assert.equal(coding !== undefined, accepted !== undefined && count > 1);
    const body = coding === "br" ? brotliDecompressSync(response.body) : response.body;
    const items = entry.items.slice(0, count).map((item) => ({ ...item, total: item.price * item.quantity * m }));
    assert.deepEqual(JSON.parse(String(coding === "gzip" ? gunzipSync(body) : body)), { items, count });
  }
}

/** Opens a TLS connection. Rejects if the handshake fails. */
async function handshake(entry: Entry, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ host: entry.secure.address, port: entry.secure.port, ...trusting(entry), ...options });
  await within(once(socket, "secureConnect"), "a TLS handshake");
  return socket;
}

async function checkTls(entry: Entry): Promise<void> {
  const socket = await handshake(entry, { ALPNProtocols: ["http/1.1"] });
  // The closed socket keeps its negotiated protocol and certificate.
  socket.end();
  const mounted = new X509Certificate(entry.cert).fingerprint256;
  assert.equal(socket.getPeerX509Certificate()?.fingerprint256, mounted);
  assert.deepEqual([socket.getProtocol(), socket.alpnProtocol], ["TLSv1.3", "http/1.1"]);
  assert.match(socket.getCipher().standardName, /^TLS_(?:AES_128_GCM|AES_256_GCM|CHACHA20_POLY1305)_SHA\d+$/);
}

async function checkWeakTls(entry: Entry): Promise<void> {
  for (const maxVersion of ["TLSv1", "TLSv1.1", "TLSv1.2"] as const) {
    const families = maxVersion === "TLSv1.2" ? "NULL:aNULL:EXPORT:RC4:DES:3DES" : "ALL:NULL:aNULL";
    const offer = handshake(entry, { minVersion: "TLSv1", maxVersion, ciphers: `${families}:@SECLEVEL=0` });
    await assert.rejects(offer, /alert/);
  }
}

/** Sends a SumRequest as bytes, and checks the bytes of the SumReply. */
async function checkEnvelope({ plain }: Entry): Promise<void> {
  const [a, b] = [randomBetween(1, 60), randomBetween(1, 60)];
  using connection = await openHttp2(plain);
  const { httpStatus, header, trailer, body } = await connection.exchange({
    httpMethod: "POST",
    path: "/benchmark.BenchmarkService/GetSum",
    header: [
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ],
    body: encodeEnvelope(0, Buffer.of(0x08, a, 0x10, b)),
  });
  assert.deepEqual([httpStatus, fieldValue(trailer, "grpc-status")], [200, "0"]);
  assert.match(fieldValue(header, "content-type") ?? "", /^application\/grpc(?:\+proto)?$/);
  assert.deepEqual(decodeEnvelopes(body), [{ flags: 0, bytes: Buffer.of(0x08, a + b) }]);
}

/** Calls the entry with grpc-js, which reads the definition without generated code. */
async function checkCalls({ plain }: Entry, check: (client: GrpcJsClient) => Promise<void>): Promise<void> {
  const includeDirs = [import.meta.dirname, join(projectFolder, "protoport/gateway/proto")];
  const service = loadSync("benchmark.proto", { includeDirs })["benchmark.BenchmarkService"];
  // Only message definitions have a `format`, so a definition with `format` is not a service.
  if (service === undefined || "format" in service) throw new Error("benchmark.proto has no BenchmarkService");
  const Client = makeGenericClientConstructor(service, "BenchmarkService");
  const client = new Client(`${plain.address}:${String(plain.port)}`, credentials.createInsecure());
  await within(check(client), "calls of grpc-js").finally(() => client.close());
}

type GrpcJsClient = InstanceType<ReturnType<typeof makeGenericClientConstructor>>;

async function checkSums(client: GrpcJsClient): Promise<void> {
  for (const a of [randomBetween(100, 499), randomBetween(500, 999)]) {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    client["getSum"]?.({ a, b: 42 }, (error: Error | null, reply: unknown) => (error ? reject(error) : resolve(reply)));
    assert.deepEqual(await promise, { result: a + 42 });
  }
}

/** Reads streams. `toArray` rejects if the status is not OK. */
async function checkStreams(client: GrpcJsClient): Promise<void> {
  const a = randomBetween(0, 999);
  for (const count of [10, 5000, 0]) {
    const expected = Array.from({ length: count }, (_, at) => ({ result: a + 42 + at }));
    assert.deepEqual(await client["streamSum"]?.({ a, b: 42, count }).toArray(), expected);
  }
}

/** An HttpArena rule. */
export interface Rule {
  readonly profile: string;
  readonly name: string;
  /** Rejects if the entry does not follow the rule. */
  readonly check: (entry: Entry) => Promise<void>;
}

function rule(profile: string, name: string, check: Rule["check"]): Rule {
  return { profile, name, check };
}

/** The rules for the entry's profiles. A profile has its current name, or the former name `json` or `stream-grpc`. */
export const rules: readonly Rule[] = [
  rule("baseline", "GET adds random numbers", checkGet),
  rule("baseline", "POST adds a body of text", (entry) => checkPosts(entry, ["content-type", "text/plain"])),
  rule("baseline", "POST adds a body without a type", (entry) => checkPosts(entry)),
  rule("baseline", "POST adds a chunked body", (entry) => checkPosts(entry, ["transfer-encoding", "chunked"])),
  rule("baseline", "requests may be split at any byte", checkFragments),
  rule("limited-conn", "a connection serves ten requests", checkShortConnections),
  rule("json", "random items have totals", (entry) => checkItems(entry, {})),
  rule("json-comp", "random items have totals, compressed", (entry) => checkItems(entry, { accepted: "gzip, br" })),
  rule("json-tls", "random items have totals", (entry) => checkItems(entry, { tls: true })),
  rule("json-tls", "TLS 1.3 has the mounted certificate and a strong cipher", checkTls),
  rule("json-tls", "old versions of TLS and weak ciphers are refused", checkWeakTls),
  rule("unary-grpc", "GetSum returns one envelope over HTTP/2", checkEnvelope),
  rule("unary-grpc", "grpc-js can call GetSum", (entry) => checkCalls(entry, checkSums)),
  rule("stream-grpc", "grpc-js can call StreamSum", (entry) => checkCalls(entry, checkStreams)),
];

if (import.meta.main) {
  await using entry = await startEntry(await freePorts());
  for (const { profile, name, check } of rules) {
    const problem = await check(entry).then(() => undefined, String);
    console.log(`${problem === undefined ? "passed" : "FAILED"}  ${profile}: ${name} ${problem ?? ""}`.trimEnd());
    if (problem !== undefined) process.exitCode = 1;
  }
}
