/**
 * Compares two gateway builds in one process, without sockets and load generators. Requests are passed to the HTTP
 * servers as bytes. Sockets and the kernel do not affect the figures, so the figures show the cost of a change in a few
 * lines. On a busy machine, two copies of the same build differ by up to 5 %. `npx node protoport/bench/in-process.ts [--against
 * REV] [--calls 250] [--rounds 150]`
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { EventEmitter } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { create, toJson, toJsonString } from "@bufbuild/protobuf";
import type { GatewayOptions } from "../gateway/src/index.ts";
import { maxBooks, makeBook, makeBooks } from "../testing/src/gateway/books.ts";
import { BookSchema, ImportBooksRequestSchema, LibraryService } from "../testing/src/gen/library/v1/library_pb.ts";
import { checkOut } from "./revision.ts";
import { library } from "./servers/library-routes.ts";
import { formatRows } from "./table.ts";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    calls: { type: "string", default: "250" },
    rounds: { type: "string", default: "150" },
  },
});

/** Sends a request and resolves when its response is complete. */
type Send = (request: Buffer) => Promise<void>;

/** A gateway build on an HTTP server. */
interface Contender {
  readonly name: string;
  readonly send: Send;
}

/** A connection that passes bytes to and from the server by function calls. */
class FakeSocket extends Socket {
  #onResponse: () => void = () => undefined;

  request(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#onResponse = resolve;
      this.push(bytes);
    });
  }

  override _read(): void {}

  // Called once for a response, because the servers send responses of these sizes in a single write.
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
    this.#respond();
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done();
    this.#respond();
  }

  // Calls the callback after the event loop turn, when node has finished the response. Otherwise, the server would
  // treat the next request as pipelined.
  #respond(): void {
    setImmediate(this.#onResponse);
  }
}

/** Number of rounds before the measurement, in which V8 compiles the code. */
const warmUpRounds = 24;

const books = makeBooks(maxBooks);
const plainBooks = books.map((book) => toJson(BookSchema, book));
const requests: Readonly<Record<string, Buffer>> = {
  "a book": requestOf("GET", "/v1/books/0"),
  "a list of 100": requestOf("GET", `/v1/books?pageSize=${String(maxBooks)}`),
  "a book from the client": requestOf("POST", "/v1/books", toJsonString(BookSchema, makeBook(0))),
  "100 from the client": requestOf(
    "POST",
    "/v1/books:import",
    toJsonString(ImportBooksRequestSchema, create(ImportBooksRequestSchema, { books })),
  ),
};

using revision = values.against === undefined ? undefined : checkOut(values.against);
const trees = [{ name: "this checkout", folder: join(import.meta.dirname, "../..") }, ...(revision ? [revision] : [])];
const contenders: Contender[] = [{ name: "node:http, plain JSON", send: openServer(createServer(respondPlainly)) }];
for (const { name, folder } of trees) {
  contenders.push({ name: `${name}, listening`, send: await openListening(folder) });
  contenders.push({ name: `${name}, mounted`, send: await openMounted(folder) });
}
const calls = Number(values.calls);
const rows: string[][] = contenders.map(({ name }) => [name]);
for (const request of Object.values(requests)) {
  const figures = await measure(request);
  for (const [index, row] of rows.entries()) row.push(format(figures[index] ?? []));
}
console.log(formatRows(["CPU µs a call: first decile (median)", ...Object.keys(requests)], rows));
process.exit();

/** Returns each contender's CPU time per call, in µs, by round. */
async function measure(request: Buffer): Promise<number[][]> {
  // Large messages take longer, so fewer calls are enough.
  const count = Math.max(20, Math.round(calls / Math.max(1, request.byteLength / 1_000)));
  const figures = contenders.map((): number[] => []);
  for (const { send } of contenders) await repeat(send, request, count * warmUpRounds);
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = [...contenders.entries()];
    for (const [index, { send }] of round % 2 === 0 ? order : order.toReversed()) {
      const before = process.cpuUsage();
      await repeat(send, request, count);
      const { user, system } = process.cpuUsage(before);
      figures[index]?.push((user + system) / count);
    }
  }
  return figures;
}

async function repeat(send: Send, request: Buffer, count: number): Promise<void> {
  for (let call = 0; call < count; call++) await send(request);
}

/** Returns the first decile and the median, because other processes can only make a round slower. */
function format(figures: readonly number[]): string {
  const sorted = figures.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2);
  return `${at(0.1)} (${at(0.5)})`;
}

async function importFrom<Module>(folder: string, path: string): Promise<Module> {
  return await import(pathToFileURL(join(folder, path)).href);
}

async function openListening(folder: string): Promise<Send> {
  const { createGateway } = await importGateway(folder);
  let server: unknown;
  const keep = (message: unknown): void => void (server = Reflect.get(Object(message), "server"));
  subscribe("tracing:net.server.listen:asyncStart", keep);
  await createGateway(routesOf()).listen({ host: "127.0.0.1", port: 0 });
  unsubscribe("tracing:net.server.listen:asyncStart", keep);
  const socket = new FakeSocket();
  if (server instanceof EventEmitter) server.emit("connection", socket);
  return (request) => socket.request(request);
}

async function openMounted(folder: string): Promise<Send> {
  const { createGateway } = await importGateway(folder);
  return openServer(createServer(createGateway(routesOf()).handler));
}

function openServer(server: Server): Send {
  // The keep-alive timeout is disabled, because a connection is idle while the other contenders are measured.
  server.keepAliveTimeout = 0;
  const socket = new FakeSocket();
  server.emit("connection", socket);
  return (request) => socket.request(request);
}

function importGateway(folder: string): Promise<typeof import("../gateway/src/index.ts")> {
  return importFrom(folder, "protoport/gateway/src/index.ts");
}

function routesOf(): GatewayOptions {
  return { routes: (router) => router.service(LibraryService, library) };
}

/** The floor returns the same JSON without checks. */
function respondPlainly(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const text = plainResponse(request.url, Buffer.concat(pieces).toString());
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text);
  });
}

function plainResponse(path: string | undefined, body: string): string {
  if (body === "") return JSON.stringify(path === "/v1/books/0" ? plainBooks[0] : { books: plainBooks });
  const parsed: { readonly books?: readonly unknown[] } = JSON.parse(body);
  return JSON.stringify(parsed.books === undefined ? parsed : { count: parsed.books.length });
}

/** Returns a request's bytes as a client sends them. */
function requestOf(httpMethod: string, path: string, body: string = ""): Buffer {
  const fields = ["Host: 127.0.0.1", "Accept: */*", "User-Agent: bench"];
  if (body !== "") fields.push("Content-Type: application/json", `Content-Length: ${String(Buffer.byteLength(body))}`);
  return Buffer.from(`${httpMethod} ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
}
