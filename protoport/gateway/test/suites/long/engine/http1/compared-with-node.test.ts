import { createServer as createHttpServer, METHODS } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { once } from "node:events";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  defaultLimits,
  type HttpProblem,
  type IncomingBody,
  checkRequestHead,
} from "../../../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../../../src/engine/backlog.ts";
import {
  Http1Connection,
  type Http1ConnectionOptions,
  type Http1RequestHead,
  type RequestReceiver,
} from "../../../../../src/engine/http1/index.ts";
import { numRunsOf } from "../../../../../../testing/src/test-seed.ts";
import type { Address } from "../../../../../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../../../../../testing/src/http/http1-connection.ts";

// node's parser is the oracle: it must parse every request that we accept in the same way, and may accept more. So an
// intermediary that parses like node cannot be made to see other requests than we do.

/** A request as a server has parsed it. */
interface Read {
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: readonly string[];
  /** `undefined` if node has rejected the bytes after the request before it reported the body. */
  body: string | undefined;
}

/** How many connections the property test opens, unless it runs out of time; each night it opens others. */
const connectionsPerProperty = numRunsOf(200);
const concurrentConnections = 40;

/** Each server's requests, by the client's port. */
const readByOwn = new Map<number | undefined, Read[]>();
const readByNode = new Map<number | undefined, Read[]>();

function note(reads: Map<number | undefined, Read[]>, port: number | undefined, read: Read): void {
  const before = reads.get(port);
  if (before === undefined) reads.set(port, [read]);
  else before.push(read);
}

/** Records a request when it is complete, and responds. */
class Reader implements RequestReceiver, IncomingBody {
  readonly isAwaited = true;
  readonly isFull = false;
  readonly #connection: Http1Connection;
  readonly #head: Http1RequestHead;
  #text = "";

  constructor(connection: Http1Connection, head: Http1RequestHead) {
    connection.receiver = this;
    this.#connection = connection;
    this.#head = head;
    if (head.problem !== undefined) this.onRequestError(head.problem);
    else if (head.section.bodyBytes === 0) this.onEnd();
    else connection.startBody();
  }

  get body(): IncomingBody {
    return this;
  }

  onData(piece: Uint8Array, last: boolean): boolean {
    this.#text += Buffer.from(piece).toString("latin1");
    this.#connection.consumed();
    if (last) this.onEnd();
    return false;
  }

  onEnd(): void {
    const { httpMethod, target, section } = this.#head;
    note(readByOwn, this.#connection.socket.remotePort, {
      httpMethod,
      target,
      fields: section.fields,
      body: this.#text,
    });
    this.#connection.respond(204, [], undefined);
  }

  onRequestError({ httpStatus }: HttpProblem): void {
    this.#connection.respond(httpStatus, [], undefined);
  }

  onDisconnect(): void {}
  onWritable(): void {}
}

const options: Http1ConnectionOptions = {
  limits: { ...defaultLimits, requestTimeoutMs: 10_000, idleTimeoutMs: 10_000 },
  keepAliveLines: "connection: keep-alive\r\n",
  timeoutCheckIntervalMs: 1000,
  budget: new BacklogBudget(2 ** 30),
  onRequest: (connection, head) => void new Reader(connection, head),
  onClose: () => {},
  onFault: (error) => {
    throw error;
  },
};

const own = createTcpServer({ allowHalfOpen: true }, (socket) => void new Http1Connection(socket, options));

const nodes = createHttpServer({ maxHeaderSize: 64 * 1024, requireHostHeader: false }, (request, response) => {
  const { method: httpMethod = "", url: target = "", rawHeaders: fields } = request;
  const read: Read = { httpMethod, target, fields, body: undefined };
  note(readByNode, request.socket.remotePort, read);
  let body = "";
  request.setEncoding("latin1").on("data", (piece: string) => (body += piece));
  request.on("end", () => {
    read.body = body;
    response.writeHead(204).end();
  });
});

beforeAll(async () => {
  for (const server of [own, nodes]) await once(server.listen(0, "127.0.0.1"), "listening");
});
afterAll(() => {
  nodes.closeAllConnections();
  for (const server of [own, nodes]) server.close();
});

function addressOf(server: Server): Address {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen on TCP");
  return address;
}

/** Returns the requests that a server has parsed from bytes, after it has closed the connection. */
async function readBy(
  server: Server,
  reads: Map<number | undefined, Read[]>,
  pieces: readonly Uint8Array[],
): Promise<Read[]> {
  using connection = await openHttp1(addressOf(server));
  const { localPort } = connection.socket;
  // An earlier connection from this port may have left an entry.
  reads.delete(localPort);
  for (const [i, piece] of pieces.entries()) {
    if (i > 0) await new Promise(setImmediate);
    connection.write(piece);
  }
  connection.socket.end();
  await connection.readToEnd();
  return reads.get(localPort) ?? [];
}

const ourReading = (...pieces: readonly Uint8Array[]): Promise<Read[]> => readBy(own, readByOwn, pieces);
const nodesReading = (...pieces: readonly Uint8Array[]): Promise<Read[]> => readBy(nodes, readByNode, pieces);

const validRequests = [
  "DELETE /orders/7 HTTP/1.1\r\nhost: x\r\nAuthorization: Bearer abc\r\n\r\n",
  "POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\norder",
  "POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\norder\r\n0A\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
  "PUT /c HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\nX:\t \xe9 \r\n\r\n!",
  "\r\nGET /?d=1 HTTP/1.1\r\nhost:x\r\nconnection: keep-alive\r\n\r\n",
  "GET /e HTTP/1.0\r\nx: y\r\n\r\n",
];

// Bytes that parsers interpret differently, which allows request smuggling.
const ambiguousBytes = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  "\x0b",
  "\xa0",
  ":",
  " ",
  "\t",
  ",",
  ";",
  "0\r\n\r\n",
  "5;",
  "5; a",
  "\r\n\r\n",
  "\r\n ",
  "+",
  "content-length: 3\r\n",
  "Content-Length: 05\r\n",
  "transfer-encoding: chunked\r\n",
  "Transfer-Encoding: identity\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Transfer-Encoding: chunked\t\r\n",
  "connection: close\r\n",
  "HTTP/1.1",
];

const mutated: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(fc.constantFrom(...validRequests), { minLength: 1, maxLength: 3 }),
    fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        removed: fc.nat({ max: 4 }),
        inserted: fc.constantFrom("", ...ambiguousBytes),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([requests, mutations]) =>
    mutations.reduce((text, { at, removed, inserted }) => {
      const start = Math.floor(at * text.length);
      return text.slice(0, start) + inserted + text.slice(start + removed);
    }, requests.join("")),
  );

test("node:http parses every accepted request identically", async () => {
  const batch = fc.array(mutated, { minLength: concurrentConnections, maxLength: concurrentConnections });
  let [sent, accepted] = [0, 0];
  const exchange = async (text: string): Promise<void> => {
    const bytes = Buffer.from(text, "latin1");
    const [ours, theirs] = await Promise.all([ourReading(bytes), nodesReading(toKnownVersion(text))]);
    // Node rejects unknown methods, which the parser accepts. The code that serves a connection rejects invalid
    // targets.
    const unknown = ours.findIndex(
      ({ httpMethod, target }) => !METHODS.includes(httpMethod) || !isTarget(httpMethod, target),
    );
    const known = unknown < 0 ? ours : ours.slice(0, unknown);
    sent += 1;
    accepted += known.length;
    const expected = theirs.slice(0, known.length).map((read, i) => ({ ...read, body: read.body ?? known[i]?.body }));
    expect(known, JSON.stringify(text)).toEqual(expected);
  };
  await fc.assert(
    fc.asyncProperty(batch, async (texts) => void (await Promise.all(texts.map(exchange)))),
    { numRuns: connectionsPerProperty / concurrentConnections },
  );
  expect(sent).toBeGreaterThan(0);
  expect(accepted).toBeGreaterThanOrEqual(sent / 4);
});

// Node rejects a later minor version. RFC 9110 §2.5 processes it as the highest known one.
function toKnownVersion(text: string): Buffer {
  return Buffer.from(text.replace(/^([A-Z-]+ \S+ HTTP\/1\.)[2-9]\r$/gm, "$11\r"), "latin1");
}

function isTarget(httpMethod: string, target: string): boolean {
  return typeof checkRequestHead(httpMethod, target, null, false, 0, defaultLimits) === "string";
}

test.each([
  ["chunked", true],
  ["Chunked", true],
  ["\tchunked", true],
  ["chunked ", true],
  ["chunked\t", false],
  ["chunked \t", false],
  ["chunked\t ", false],
  ["chunked,", false],
])("Transfer-Encoding: %j is accepted if and only if node:http accepts it", async (coding, isAccepted) => {
  const request = `POST /a HTTP/1.1\r\nhost: x\r\nTransfer-Encoding:${coding}\r\n\r\n0\r\n\r\n`;
  await expectAccepted(request, isAccepted);
});

test.each([
  ["3;", false],
  ["3 ", false],
  ["3;a;", false],
  ["3;a ", false],
  ["3;a", true],
  ["3;a=b;c", true],
  ['3;a="b \\" \xe9"', true],
])("the chunk size line %j is accepted if and only if node:http accepts it", async (size, isAccepted) => {
  const request = `POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${size}\r\nabc\r\n0\r\n\r\n`;
  await expectAccepted(request, isAccepted);
});

test.each(["3; a", "3 ;a", "3\t;a", "3;a =b", '3;a= "b" ; c'])(
  "the chunk size line %j is accepted (RFC 9112), unlike in node:http",
  async (size) => {
    const request = `POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${size}\r\nabc\r\n0\r\n\r\n`;
    const bytes = Buffer.from(request, "latin1");
    const [ours, theirs] = await Promise.all([ourReading(bytes), nodesReading(bytes)]);
    expect(ours.map(({ body }) => body)).toEqual(["abc"]);
    expect(theirs.some(({ body }) => body !== undefined)).toBe(false);
  },
);

test.each([
  ["content-length: 3", false],
  ["Content-Length: 0", false],
  ["transfer-encoding: chunked", false],
  ["Transfer-Encoding: gzip", false],
  ["connection: close", true],
  ["x: y", true],
])("a trailer section with %s is accepted if and only if node:http accepts it", async (field, isAccepted) => {
  const request = `POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${field}\r\n\r\n`;
  await expectAccepted(request, isAccepted);
});

/** Expects that both servers accept a request, or neither. */
async function expectAccepted(request: string, isAccepted: boolean): Promise<void> {
  const bytes = Buffer.from(request, "latin1");
  const [ours, theirs] = await Promise.all([ourReading(bytes), nodesReading(bytes)]);
  expect(ours.length > 0).toBe(isAccepted);
  expect(theirs.some(({ body }) => body !== undefined)).toBe(isAccepted);
}

test("requests are parsed identically at any split of their bytes", async () => {
  const bytes = Buffer.from(validRequests.join(""), "latin1");
  const complete = await ourReading(bytes);
  expect(complete).toHaveLength(validRequests.length);
  expect(complete).toEqual(await nodesReading(bytes));
  const splits = Array.from({ length: bytes.byteLength - 1 }, (_, at) => at + 1);
  const exchange = async (at: number): Promise<void> => {
    expect(await ourReading(bytes.subarray(0, at), bytes.subarray(at)), `split at ${String(at)}`).toEqual(complete);
  };
  while (splits.length > 0) await Promise.all(splits.splice(0, concurrentConnections).map(exchange));
  expect(await ourReading(...Array.from(bytes, (octet) => Buffer.of(octet)))).toEqual(complete);
});
