import { once } from "node:events";
import type { Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { createByteReader, type ByteReader } from "./byte-reader.ts";
import { within } from "../deadline.ts";
import { type Address, authorityOf, type Field, type HttpAnswer, type HttpRequest, openSocket } from "./exchange.ts";

/** One answer on an HTTP/1.1 connection, with what only HTTP/1.1 has. */
export interface Http1Answer extends HttpAnswer {
  /** The bytes from the status line to the empty line, as text. */
  readonly head: string;
  /** The interim (1xx) statuses that came first. */
  readonly interim: readonly number[];
}

/** A client's HTTP/1.1 connection that sends exactly the bytes it is given. */
export interface Http1Connection {
  readonly socket: Socket;
  /** Sends bytes as they are; text is sent as Latin-1, so that any byte can be written as an escape. */
  write(bytes: string | Uint8Array): void;
  /** Writes one well-formed request; several may follow each other before an answer is read. */
  request(request: HttpRequest): void;
  /** Reads one whole answer. `httpMethod` matters because the answer to a HEAD has no body. */
  readAnswer(httpMethod?: string): Promise<Http1Answer>;
  /** Everything until the server closes the connection. */
  readToEnd(): Promise<Buffer>;
  /** Whether the server closed the connection and sent nothing more. Waits for one or the other. */
  atEnd(): Promise<boolean>;
  [Symbol.dispose](): void;
}

/** Opens an HTTP/1.1 connection, inside TLS if there are options for it. Dispose of it with `using`. */
export async function openHttp1(address: Address, tls?: ConnectionOptions): Promise<Http1Connection> {
  const outer = openSocket(address);
  const socket = tls === undefined ? outer : connectTls({ socket: outer, ALPNProtocols: ["http/1.1"], ...tls });
  const reader = createByteReader(socket);
  await within(once(socket, tls === undefined ? "connect" : "secureConnect"), "a connection");
  return overHttp1(socket, reader, authorityOf(address));
}

/** Speaks HTTP/1.1 over a socket that is connected, a TLS socket for one. `host` is the Host field of requests. */
export function overHttp1(socket: Socket, reader: ByteReader, host: string): Http1Connection {
  return {
    socket,
    write: (bytes) => void socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes),
    request: (request) => void socket.write(requestBytes(request, host)),
    readAnswer: (httpMethod = "") => readAnswer(reader, httpMethod),
    readToEnd: () => reader.readToEnd("the end of the connection"),
    atEnd: () => reader.atEnd(),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Sends one request on a separate connection, and returns its response. */
export async function exchangeHttp1(address: Address, request: HttpRequest): Promise<Http1Answer> {
  using connection = await openHttp1(address);
  connection.request(request);
  return await connection.readAnswer(request.httpMethod);
}

function requestBytes(request: HttpRequest, host: string): Buffer {
  const sent = new Set(request.header.map((field) => field[0]));
  const added: Field[] = [];
  if (!sent.has("host")) added.push(["host", host]);
  if (request.body !== undefined && !sent.has("content-length") && !sent.has("transfer-encoding"))
    added.push(["content-length", String(request.body.byteLength)]);
  const fields = [...added, ...request.header].map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${request.httpMethod} ${request.path} HTTP/1.1\r\n${fields.join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), request.body ?? Buffer.alloc(0)]);
}

async function readAnswer(reader: ByteReader, httpMethod: string): Promise<Http1Answer> {
  const interim: number[] = [];
  for (;;) {
    const head = (await reader.readThrough("\r\n\r\n", "the head of an answer")).toString("latin1");
    const httpStatus = readStatus(head);
    if (httpStatus < 200 && httpStatus !== 101) {
      interim.push(httpStatus);
      continue;
    }
    const header = readFields(head.slice(head.indexOf("\r\n") + 2));
    const rest = await readBody(reader, httpMethod, httpStatus, header);
    return { httpStatus, header, head, interim, ...rest };
  }
}

function readStatus(head: string): number {
  const status = /^HTTP\/1\.1 (\d{3})(?: [^\r\n]*)?\r\n/.exec(head)?.[1];
  if (status === undefined) throw new Error(`no HTTP/1.1 status line: ${JSON.stringify(head)}`);
  return Number(status);
}

function readFields(lines: string): Field[] {
  const fields: Field[] = [];
  for (const line of lines.split("\r\n")) {
    if (line === "") continue;
    const colon = line.indexOf(":");
    if (colon <= 0) throw new Error(`not a header field: ${JSON.stringify(line)}`);
    fields.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]);
  }
  return fields;
}

async function readBody(
  reader: ByteReader,
  httpMethod: string,
  httpStatus: number,
  header: readonly Field[],
): Promise<{ body: Buffer; trailer: readonly Field[] }> {
  // RFC 9112 §6.3: what follows the head, in the order of its rules.
  if (httpMethod === "HEAD" || httpStatus === 204 || httpStatus === 304) return { body: Buffer.alloc(0), trailer: [] };
  const field = (name: string): string | undefined => header.find((candidate) => candidate[0] === name)?.[1];
  if (field("transfer-encoding") === "chunked") return await readChunked(reader);
  const length = field("content-length");
  if (length === undefined)
    return { body: await reader.readToEnd("a body that ends with the connection"), trailer: [] };
  return { body: await reader.readExactly(Number(length), `a body of ${length} bytes`), trailer: [] };
}

async function readChunked(reader: ByteReader): Promise<{ body: Buffer; trailer: readonly Field[] }> {
  const chunks: Buffer[] = [];
  for (;;) {
    const size = Number.parseInt((await reader.readThrough("\r\n", "a chunk's size")).toString("latin1"), 16);
    if (size === 0) break;
    chunks.push((await reader.readExactly(size + 2, "a chunk")).subarray(0, size));
  }
  const trailer: Field[] = [];
  for (;;) {
    const line = (await reader.readThrough("\r\n", "the end of the trailers")).toString("latin1");
    if (line === "\r\n") return { body: Buffer.concat(chunks), trailer };
    trailer.push(...readFields(line));
  }
}
