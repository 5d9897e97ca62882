/**
 * Compares two builds of the gateway in one process, without sockets and load generators: requests are passed to the HTTP
 * servers as bytes. Sockets and the kernel take no part of the figures, so it shows what a change of a few lines costs. On
 * a busy machine, two copies of one build differ by up to 5 %.
 * `npx node --expose-gc bench/in-process.ts [--against REV] [--calls 10000] [--rounds 20]`
 */
import { createServer } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { create, toJsonString } from "@bufbuild/protobuf";
import type { GatewayOptions } from "../packages/gateway/src/index.ts";
import type { HttpEngine, HttpServer } from "../packages/http/src/listen/index.ts";
import { booksMax, makeBook, makeBooks } from "../packages/testing/src/gateway/books.ts";
import {
  BookSchema,
  ImportBooksRequestSchema,
  LibraryService,
} from "../packages/testing/src/gen/library/v1/library_pb.ts";
import { checkOut } from "./revision.ts";
import { library } from "./servers/library-routes.ts";
import { summarise } from "./summary.ts";
import { formatRows } from "./table.ts";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    calls: { type: "string", default: "10000" },
    rounds: { type: "string", default: "20" },
  },
});

/** Sends a request and resolves when its response is complete. */
type Send = (request: Buffer) => Promise<void>;

/** One build on one HTTP server. */
interface Contender {
  readonly name: string;
  readonly send: Send;
}

/** A connection whose bytes are passed to the server and taken from it by calls. */
class FakeSocket extends Socket {
  #onResponse: () => void = () => undefined;

  request(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#onResponse = resolve;
      this.push(bytes);
    });
  }

  override _read(): void {}

  // Called once for a response: the servers write one of these sizes at a time.
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
    this.#onResponse();
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done();
    this.#onResponse();
  }
}

const books = makeBooks(booksMax);
const requests: Readonly<Record<string, Buffer>> = {
  "a book": requestOf("GET", "/v1/books/0"),
  "a list of 100": requestOf("GET", `/v1/books?pageSize=${String(booksMax)}`),
  "a book from the client": requestOf("POST", "/v1/books", toJsonString(BookSchema, makeBook(0))),
  "100 from the client": requestOf(
    "POST",
    "/v1/books:import",
    toJsonString(ImportBooksRequestSchema, create(ImportBooksRequestSchema, { books })),
  ),
};

using revision = values.against === undefined ? undefined : checkOut(values.against);
const trees = [{ name: "this checkout", folder: join(import.meta.dirname, "..") }, ...(revision ? [revision] : [])];
const contenders: Contender[] = [];
for (const { name, folder } of trees) {
  contenders.push({ name: `${name}, engine`, send: await openOnEngine(folder) });
  contenders.push({ name: `${name}, node:http`, send: await openOnNode(folder) });
}
const calls = Number(values.calls);
const rows: string[][] = contenders.map(({ name }) => [name]);
for (const request of Object.values(requests)) {
  const figures = await measure(request);
  for (const [index, row] of rows.entries()) row.push(format(figures[index] ?? []));
}
console.log(formatRows(["CPU µs a call: median (least)", ...Object.keys(requests)], rows));
process.exit();

/** Returns the CPU time of a call of each contender, in µs, by round. */
async function measure(request: Buffer): Promise<number[][]> {
  // Large messages take longer, so fewer are enough.
  const count = Math.max(100, Math.round(calls / Math.max(1, request.byteLength / 1_000)));
  const figures = contenders.map((): number[] => []);
  for (const { send } of contenders) await repeat(send, request, count);
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = [...contenders.entries()];
    for (const [index, { send }] of round % 2 === 0 ? order : order.toReversed()) {
      globalThis.gc?.();
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

function format(figures: readonly number[]): string {
  const { median, least } = summarise(figures, (figure) => figure);
  return `${median.toFixed(2)} (${least.toFixed(2)})`;
}

async function importFrom<Module>(folder: string, path: string): Promise<Module> {
  return await import(pathToFileURL(join(folder, path)).href);
}

async function openOnEngine(folder: string): Promise<Send> {
  const { createGateway } = await importGateway(folder);
  const { createHttpEngine } = await importFrom<typeof import("../packages/http-engine/src/index.ts")>(
    folder,
    "packages/http-engine/src/index.ts",
  );
  const engine = createHttpEngine();
  let http1: HttpServer | undefined;
  const spied: HttpEngine = { ...engine, createHttp1Server: (options) => (http1 = engine.createHttp1Server(options)) };
  const gateway = createGateway({ ...routesOf(), engine: spied });
  await gateway.listen({ host: "127.0.0.1", port: 0 });
  const socket = new FakeSocket();
  http1?.take(socket);
  return (request) => socket.request(request);
}

async function openOnNode(folder: string): Promise<Send> {
  const { createGateway } = await importGateway(folder);
  const server = createServer(createGateway(routesOf()).handler);
  const socket = new FakeSocket();
  server.emit("connection", socket);
  return (request) => socket.request(request);
}

function importGateway(folder: string): Promise<typeof import("../packages/gateway/src/index.ts")> {
  return importFrom(folder, "packages/gateway/src/index.ts");
}

function routesOf(): GatewayOptions {
  return { routes: (router) => router.service(LibraryService, library) };
}

/** Returns the bytes of a request as a client sends them. */
function requestOf(httpMethod: string, path: string, body: string = ""): Buffer {
  const fields = ["Host: 127.0.0.1", "Accept: */*", "User-Agent: bench"];
  if (body !== "") fields.push("Content-Type: application/json", `Content-Length: ${String(Buffer.byteLength(body))}`);
  return Buffer.from(`${httpMethod} ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
}
