import { performServerHandshake } from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspect } from "node:util";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { defaultHttp2Limits } from "../../../src/engine/http2/http2-limits.ts";
import { Http2Connection } from "../../../src/engine/http2/http2-connection.ts";
import type { Http2Stream, StreamReceiver } from "../../../src/engine/http2/http2-stream.ts";
import { StableFields } from "../../../src/engine/http2/hpack/encoder.ts";
import { ClientConnection, type ClientStream, type ResponseReceiver } from "../../../src/engine/http2-client.ts";
import { ErrorCode, type IncomingBody } from "../../../src/http/exchange/index.ts";
import { Dice } from "../../../../testing/src/dice.ts";
import { answer, echo, pipe, receiving } from "../../../../testing/src/http2/http2-engine.ts";
import { clientPreface, frame, frameBytes, frameType } from "../../../../testing/src/http/http2-frames.ts";

const windows = { streamWindowBytes: 70_000, connectionWindowBytes: 100_000 };
const limits = { ...defaultHttp2Limits, concurrentStreams: 4, ...windows };
const opening = Buffer.concat([clientPreface, frameBytes(frame(frameType.settings, 0, 0))]);

/** A stream as a server has read it. */
type Read = { readonly fields: readonly string[]; body: string; isComplete: boolean };
type Reads = Map<number, Read>;

/** The bytes that choose how a side behaves, so that an input behaves alike whenever it is repeated. */
const diceOf = (bytes: Buffer): Dice => new Dice(bytes.reduce((sum, octet) => (Math.imul(sum, 31) + octet) | 0, 7));

function openPair(): readonly [Duplex, Duplex] {
  const [one, other]: Duplex[] = duplexPair();
  if (one === undefined || other === undefined) throw new Error("duplexPair returned no pair");
  one.on("error", () => undefined);
  return [one, other];
}

/** Writes bytes in up to four pieces, and closes the side in half of all cases. */
async function send(dice: Dice, side: Duplex, bytes: Buffer, between: () => void): Promise<void> {
  const pieces = 1 + dice.roll(4);
  const length = Math.ceil(bytes.byteLength / pieces);
  for (let i = 0; i < pieces; i++) {
    side.write(bytes.subarray(i * length, (i + 1) * length));
    await nextTurn();
    between();
  }
  if (dice.roll(2) === 0) side.end();
  await nextTurn();
}

/** Returns why the engine's server or its reading of a client's frames is wrong, if it is. */
export async function http2ServerProblem(bytes: Buffer): Promise<string | undefined> {
  const dice = diceOf(bytes);
  const [client, server] = openPair();
  const output: Buffer[] = [];
  const reads: Reads = new Map();
  const open = new Set<Http2Stream>();
  const budget = new BacklogBudget(1_000_000);
  let fault: unknown;
  let closed = false;
  let [hasFailed, isDrained] = [false, false];
  const connection = new Http2Connection(server, {
    limits,
    budget,
    onStream: (stream, { fields }) => {
      dice.oneOf([echo, pipe, respondLate, respondEarly])(stream);
      const read = { fields: [...fields], body: "", isComplete: stream.remoteEnded };
      reads.set(reads.size, read);
      track(stream, open, read);
    },
    onError: () => (hasFailed = true),
    onClose: () => (closed = true),
    onFault: (error) => (fault = error),
  });
  client.on("data", (piece: Buffer) => output.push(piece));
  client.write(opening);
  await send(dice, client, bytes, () => {
    if (dice.roll(8) > 0) return;
    isDrained = true;
    connection.drain();
  });
  server.destroy();
  await nextTurn();
  await nextTurn();
  client.destroy();
  if (fault !== undefined) return `the engine has failed: ${inspect(fault)}`;
  if (!closed) return "the connection is not closed";
  if (![...open].every((stream) => stream.closed && stream.localEnded)) return "a stream got no end";
  if (budget.bytes !== 0) return `${String(budget.bytes)} bytes are still buffered`;
  const problem = problemOf(Buffer.concat(output));
  // node:http2 aborts its process with some malformed frames, so it judges only what the engine accepts.
  return problem ?? (hasFailed || isDrained ? undefined : disagreement(reads, await readByNode(bytes)));
}

function disagreement(ours: Reads, theirs: Reads): string | undefined {
  for (const [i, read] of ours) {
    const their = theirs.get(i);
    const isSame = their !== undefined && JSON.stringify(read.fields) === JSON.stringify(their.fields);
    const hasSameBody = read.isComplete && their?.isComplete === true ? read.body === their.body : true;
    if (!isSame || !hasSameBody)
      return `the engine has read ${JSON.stringify(read)}, and node:http2 ${JSON.stringify(their)}`;
  }
  return undefined;
}

async function readByNode(bytes: Buffer): Promise<Reads> {
  const [client, server] = openPair();
  const reads: Reads = new Map();
  const session = performServerHandshake(server, { maxHeaderListPairs: 10_000, maxSessionInvalidFrames: 10_000 });
  session.on("error", () => undefined);
  session.on("stream", (stream, _header, _flags, fields) => {
    const read: Read = { fields, body: "", isComplete: false };
    reads.set(reads.size, read);
    stream.setEncoding("latin1").on("data", (piece: string) => (read.body += piece));
    stream.on("error", () => undefined).on("end", () => (read.isComplete = true));
  });
  client.resume();
  client.write(opening);
  await nextTurn();
  client.write(requestFrames(bytes));
  for (let turns = 0; turns < 6; turns++) await nextTurn();
  session.destroy();
  client.destroy();
  server.destroy();
  await nextTurn();
  return reads;
}

/** Returns where the frames of bytes start, and where the last one ends. */
export function frameStarts(bytes: Buffer): number[] {
  const starts = [0];
  for (let at = 0; at + 9 <= bytes.byteLength; at = starts.at(-1) ?? at)
    starts.push(Math.min(bytes.byteLength, at + 9 + bytes.readUIntBE(at, 3)));
  return starts;
}

/**
 * Returns the frames of requests. After others, node:http2 closes connections that RFC 9113 keeps open: after
 * acknowledgements that it does not expect, and after GOAWAY.
 */
function requestFrames(bytes: Buffer): Buffer {
  const frames = frameStarts(bytes).map((at, i, starts) => bytes.subarray(at, starts[i + 1]));
  const types: readonly (number | undefined)[] = [frameType.data, frameType.headers, frameType.continuation];
  return Buffer.concat(frames.filter((each) => types.includes(each[3])));
}

function respondLate(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setImmediate(() => answer(stream, Buffer.alloc(40_000)));
}

function respondEarly(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  answer(stream);
  stream.reset(ErrorCode.noError);
}

/** Records a stream's body, and keeps the stream in `open` until it is reset. */
function track(stream: Http2Stream, open: Set<Http2Stream>, read: Read): void {
  const { receiver } = stream;
  if (stream.closed || receiver === undefined) return;
  const { body } = receiver;
  open.add(stream);
  const onData: IncomingBody["onData"] = (piece, last) => {
    read.body += Buffer.from(piece).toString("latin1");
    read.isComplete ||= last;
    return body?.onData(piece, last) === true;
  };
  const onEnd = (): void => {
    read.isComplete = true;
    body?.onEnd();
  };
  const onReset: StreamReceiver["onReset"] = (code, byPeer) => {
    receiver.onReset(code, byPeer);
    open.delete(stream);
  };
  stream.receiver = { ...receiver, body: body && { ...body, onData, onEnd }, onReset };
}

/** Returns why the engine's output is not well-formed, if it is not. */
function problemOf(output: Buffer): string | undefined {
  let failed = false;
  for (let at = 0; at < output.byteLength;) {
    if (failed) return "frames follow a GOAWAY with an error";
    const length = output.byteLength - at < 9 ? Number.POSITIVE_INFINITY : output.readUIntBE(at, 3);
    const payload = output.subarray(at + 9, at + 9 + length);
    if (payload.byteLength < length || length > 16_384) return "a frame is truncated or larger than 16384 bytes";
    const [type, streamId] = [output.readUInt8(at + 3), output.readUInt32BE(at + 5)];
    if (type > frameType.continuation || type === frameType.pushPromise) return `a frame has type ${String(type)}`;
    if (streamId !== 0 && streamId % 2 === 0) return "a frame is on a server-initiated stream";
    if (type === frameType.goAway) {
      const code = payload.readUInt32BE(4);
      if (code > ErrorCode.http11Required || code === ErrorCode.internalError) return `GOAWAY has code ${String(code)}`;
      failed = code !== ErrorCode.noError;
    }
    at += 9 + length;
  }
  return undefined;
}

function ignore(): void {}

const stable = [0, 1, 2].map((i) => new StableFields([":method", "POST", ":path", `/${String(i)}`, "te", "trailers"]));

/** Returns why the engine's client is wrong with a server's frames, if it is. */
export async function http2ClientProblem(bytes: Buffer): Promise<string | undefined> {
  const dice = diceOf(bytes);
  const [server, client] = openPair();
  const output: Buffer[] = [];
  const budget = new BacklogBudget(1_000_000);
  const calls: Call[] = [];
  let fault: unknown;
  let closed = false;
  // oxfmt-ignore
  const connection = new ClientConnection(client, {
    limits, budget, keepaliveMs: 60_000, streamsBeforeSettings: 2, onReady: ignore, onStreamAvailable: ignore,
    onRetired: ignore, onBusy: ignore, onClose: () => (closed = true), onFault: (error) => (fault = error),
  });
  const call = (): void => {
    if (connection.availableStreams > 0) calls.push(new Call(dice, connection));
    if (dice.roll(8) === 0) connection.drain();
    if (dice.roll(4) === 0) calls[0]?.cancel();
  };
  server.on("data", (piece: Buffer) => output.push(piece));
  call();
  await send(dice, server, bytes, call);
  client.destroy();
  await nextTurn();
  await nextTurn();
  server.destroy();
  if (fault !== undefined) return `the client has failed: ${inspect(fault)}`;
  if (!closed || connection.availableStreams > 0 || connection.calls > 0) return "the connection is not closed";
  if (budget.bytes !== 0) return `${String(budget.bytes)} bytes are still buffered`;
  const all = Buffer.concat(output);
  if (!clientPreface.equals(all.subarray(0, clientPreface.byteLength))) return "the first bytes are not the preface";
  const wrong = calls.map(({ problem }) => problem).find((problem) => problem !== undefined);
  return wrong ?? problemOf(all.subarray(clientPreface.byteLength));
}

/** A call that records its response's events: head, data, end, reset and writable, each by its first letter. */
class Call implements ResponseReceiver {
  readonly #stream: ClientStream;
  readonly #keepsBytes: boolean;
  #events = "";

  constructor(dice: Dice, connection: ClientConnection) {
    this.#keepsBytes = dice.roll(2) === 0;
    this.#stream = connection.open(dice.oneOf(stable), Buffer.alloc(0), this);
    if (dice.roll(2) === 0) this.#stream.sendData(Buffer.alloc(dice.roll(100_000)));
    if (dice.roll(4) > 0) this.#stream.end(Buffer.alloc(dice.roll(2) * dice.roll(70_000)));
  }

  get problem(): string | undefined {
    const isComplete = this.#stream.closed && /^w*(?:h[dw]*[er]|r)$/.test(this.#events);
    return isComplete ? undefined : `a call got the events "${this.#events}"`;
  }

  cancel(): void {
    this.#stream.reset(ErrorCode.cancel);
  }

  onHead(_head: unknown, endStream: boolean): void {
    this.#events += endStream ? "he" : "h";
  }

  onData(piece: Uint8Array): void {
    this.#events += "d";
    if (!this.#keepsBytes) this.#stream.consumed(piece.byteLength);
  }

  onEnd(): void {
    this.#events += "e";
  }

  onReset(): void {
    this.#events += "r";
  }

  onWritable(): void {
    this.#events += "w";
  }
}
