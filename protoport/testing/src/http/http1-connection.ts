import { once } from "node:events";
import type { Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { createByteReader, type ByteReader } from "./byte-reader.ts";
import { within } from "../deadline.ts";
import { type Address, authorityOf, type Field, type HttpResponse, type HttpRequest, openSocket } from "./exchange.ts";

/** A response on an HTTP/1.1 connection, with its raw head. */
interface Http1Response extends HttpResponse {
  /** The status line and the header, up to the empty line. */
  readonly head: string;
  /** The interim (1xx) statuses received before the response. */
  readonly interim: readonly number[];
}

/** A client connection over HTTP/1.1 that sends exactly the bytes that a test writes. */
export interface Http1Connection {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  /** Writes a well-formed request. Several requests may be pipelined before a response is read. */
  request(request: HttpRequest): void;
  /** Reads a complete response. @param httpMethod - because the response to HEAD has no body */
  readResponse(httpMethod?: string): Promise<Http1Response>;
  readToEnd(): Promise<Buffer>;
  /** Waits until the server sends more bytes or closes the connection. Returns whether it closed the connection. */
  atEnd(): Promise<boolean>;
  [Symbol.dispose](): void;
}

/** Opens an HTTP/1.1 connection, with TLS if `tls` is set. Dispose of the connection with `using`. */
export async function openHttp1(address: Address, tls?: ConnectionOptions): Promise<Http1Connection> {
  const outer = openSocket(address);
  const socket = tls === undefined ? outer : connectTls({ socket: outer, ALPNProtocols: ["http/1.1"], ...tls });
  const reader = createByteReader(socket);
  await within(once(socket, tls === undefined ? "connect" : "secureConnect"), "a connection");
  return overHttp1(socket, reader, authorityOf(address));
}

/** Uses HTTP/1.1 on a connected socket, such as a TLS socket. @param host - the Host field of requests */
export function overHttp1(socket: Socket, reader: ByteReader, host: string): Http1Connection {
  return {
    socket,
    write: (bytes) => void socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes),
    request: (request) => void socket.write(requestBytes(request, host)),
    readResponse: (httpMethod = "") => readResponse(reader, httpMethod),
    readToEnd: () => reader.readToEnd("the end of the connection"),
    atEnd: () => reader.atEnd(),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

export async function exchangeHttp1(address: Address, request: HttpRequest): Promise<Http1Response> {
  using connection = await openHttp1(address);
  connection.request(request);
  return await connection.readResponse(request.httpMethod);
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

async function readResponse(reader: ByteReader, httpMethod: string): Promise<Http1Response> {
  const interim: number[] = [];
  for (;;) {
    const head = (await reader.readThrough("\r\n\r\n", "the head of a response")).toString("latin1");
    const httpStatus = readStatus(head);
    if (httpStatus < 200 && httpStatus !== 101) {
      interim.push(httpStatus);
      continue;
    }
    const header = parseHeaderFields(head.slice(head.indexOf("\r\n") + 2));
    return { httpStatus, header, head, interim, ...(await readBody(reader, httpMethod, httpStatus, header)) };
  }
}

function readStatus(head: string): number {
  const status = /^HTTP\/1\.1 (\d{3})(?: [^\r\n]*)?\r\n/.exec(head)?.[1];
  if (status === undefined) throw new Error(`not an HTTP/1.1 status line: ${JSON.stringify(head)}`);
  return Number(status);
}

function parseHeaderFields(lines: string): Field[] {
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
  // Applies the rules in RFC 9112 §6.3, in the order of the RFC.
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
    trailer.push(...parseHeaderFields(line));
  }
}
