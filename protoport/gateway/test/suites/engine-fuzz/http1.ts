import { createServer, METHODS } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Socket } from "node:net";
import { inspect } from "node:util";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { Http1Connection } from "../../../src/engine/http1/http1-connection.ts";
import type { Http1RequestHead } from "../../../src/engine/http1/request-head.ts";
import { checkRequestHead, defaultLimits, type HttpProblem } from "../../../src/http/exchange/index.ts";

/** A request as a server has parsed it. */
interface Read {
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: readonly string[];
  /** `undefined` if node has refused the bytes after the request before it reported the body. */
  body: string | undefined;
}

function ignore(): void {}

function record(
  connection: Http1Connection,
  { problem, httpMethod, target, section }: Http1RequestHead,
  reads: Read[],
): void {
  let body = "";
  const onEnd = (): void => {
    reads.push({ httpMethod, target, fields: section.fields, body });
    connection.respond(204, [], undefined);
  };
  const onData = (piece: Uint8Array, last: boolean): boolean => {
    body += Buffer.from(piece).toString("latin1");
    connection.consumed();
    if (last) onEnd();
    return false;
  };
  const refuse = ({ httpStatus }: HttpProblem): void => connection.respond(httpStatus, [], undefined);
  const received = { isAwaited: true, isFull: false, onData, onEnd };
  connection.receiver = { body: received, onRequestError: refuse, onDisconnect: ignore, onWritable: ignore };
  if (problem !== undefined) refuse(problem);
  else if (section.bodyBytes === 0) onEnd();
  else connection.startBody();
}

/** The requests that node:http has read, by connection. */
const readsOfNode = new WeakMap<object, Read[]>();
const nodes = createServer({ maxHeaderSize: 128 * 1024, requireHostHeader: false }, (request, response) => {
  const { method: httpMethod = "", url: target = "", rawHeaders: fields } = request;
  const read: Read = { httpMethod, target, fields, body: undefined };
  readsOfNode.get(request.socket)?.push(read);
  let body = "";
  request.setEncoding("latin1").on("data", (piece: string) => (body += piece));
  request.on("end", () => {
    read.body = body;
    response.writeHead(204).end();
  });
});

/** Turns of the event loop after which a connection must be closed. Node needs three for a request. */
const maxTurns = 400;

/** A connection that gets bytes by `push`, and drops what the server sends. */
class ClientSocket extends Socket {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
  }
  override _writev(_chunks: unknown, done: () => void): void {
    done();
  }
  override _final(done: () => void): void {
    done();
  }
}

/** Sends bytes in pieces to a server, and returns whether the server then closes the connection. */
async function exchange(bytes: Buffer, pieces: number, serve: (socket: Socket) => void): Promise<boolean> {
  const socket = new ClientSocket({ allowHalfOpen: true });
  socket.on("error", () => undefined);
  serve(socket);
  const length = Math.ceil(bytes.byteLength / pieces);
  for (let at = 0; at < bytes.byteLength; at += length) {
    // A copy, because a socket reads into buffers that the engine may free.
    socket.push(Buffer.from(bytes.subarray(at, at + length)));
    await nextTurn();
  }
  socket.push(null);
  for (let turns = 0; turns < maxTurns && !socket.writableFinished && !socket.destroyed; turns++) await nextTurn();
  const isClosed = socket.writableFinished || socket.destroyed;
  socket.destroy();
  await nextTurn();
  return isClosed;
}

/** Returns the requests that the engine reads, or why it has failed. */
async function readByEngine(bytes: Buffer, pieces: number): Promise<Read[] | string> {
  const reads: Read[] = [];
  const budget = new BacklogBudget(2 ** 20);
  let fault: unknown;
  const isClosed = await exchange(bytes, pieces, (socket) => {
    void new Http1Connection(socket, {
      limits: defaultLimits,
      keepAliveLines: "connection: keep-alive\r\n",
      timeoutCheckIntervalMs: 1000,
      budget,
      onRequest: (connection, head) => record(connection, head, reads),
      onClose: () => undefined,
      onFault: (error) => (fault = error),
    });
  });
  if (fault !== undefined) return `the engine has failed: ${inspect(fault)}`;
  if (!isClosed) return "the connection is not closed";
  return budget.bytes === 0 ? reads : `${String(budget.bytes)} bytes are still buffered`;
}

/** Returns why node:http parses the requests in these bytes in another way than the engine, if it does. */
export async function http1Problem(bytes: Buffer): Promise<string | undefined> {
  const ours = await readByEngine(bytes, 1);
  const inPieces = await readByEngine(bytes, 2 + (bytes.byteLength % 7));
  if (typeof ours === "string") return ours;
  if (typeof inPieces === "string") return inPieces;
  const judged = ours.slice(0, countJudged(ours));
  if (JSON.stringify(judged) !== JSON.stringify(inPieces.slice(0, countJudged(inPieces))))
    return "the engine reads pieces in another way than all bytes";
  const theirs = await readByNode(bytes);
  for (const [i, read] of judged.entries()) {
    // Node drops a body if it rejects bytes behind it at the same time, so it gets only the bytes up to the request's end.
    const their = theirs[i]?.body === undefined ? (await readByNode(await cut(bytes, i + 1)))[i] : theirs[i];
    if (their?.body === undefined && spacedExtension.test(bytes.toString("latin1"))) return undefined;
    if (JSON.stringify(read) !== JSON.stringify(their))
      return `the engine has read ${JSON.stringify(read)}, and node:http ${JSON.stringify(their)}`;
  }
  return undefined;
}

async function readByNode(bytes: Buffer): Promise<Read[]> {
  const reads: Read[] = [];
  await exchange(toKnownVersion(bytes), 1, (socket) => {
    readsOfNode.set(socket, reads);
    nodes.emit("connection", socket);
  });
  return reads;
}

/** Returns the shortest start of the bytes in which the engine reads this number of requests. */
async function cut(bytes: Buffer, requests: number): Promise<Buffer> {
  let [short, long] = [0, bytes.byteLength];
  while (long - short > 1) {
    const middle = (short + long) >>> 1;
    const reads = await readByEngine(bytes.subarray(0, middle), 1);
    if (reads.length >= requests) long = middle;
    else short = middle;
  }
  return bytes.subarray(0, long);
}

/**
 * Returns the number of requests before the first one that is not judged: node rejects methods that it does not know, and
 * the engine's server rejects invalid targets and heads over a limit, which are rejected earlier if they are incomplete.
 */
function countJudged(reads: readonly Read[]): number {
  const other = reads.findIndex(({ httpMethod, target, fields }) => {
    const listBytes = fields.join("").length + 16 * fields.length;
    const checked = checkRequestHead(httpMethod, target, null, false, listBytes, defaultLimits);
    return typeof checked !== "string" || !METHODS.includes(httpMethod) || httpMethod === "CONNECT";
  });
  return other < 0 ? reads.length : other;
}

/** White space in chunk extensions, which node rejects and recipients must accept (RFC 9112 §7.1.1). */
const spacedExtension = /^[0-9A-Fa-f]+[^\r\n]*[\t ][^\r\n]*\r$/m;

// Node rejects a later minor version. RFC 9110 §2.5 processes it as the highest known one.
function toKnownVersion(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replace(/^([A-Z-]+ \S+ HTTP\/1\.)[2-9]\r$/gm, "$11\r"), "latin1");
}
