import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BacklogBudget } from "../../src/gateway/carriers/index.ts";
import { defaultHttp2Limits, ErrorCode, Http2Connection, type Http2Stream } from "../../src/gateway/http2/index.ts";
import { Dice } from "../support/dice.ts";
import { answer, echo, pipe, receiving } from "../support/http2/http2-engine.ts";
import { clientPreface, frame, frameBytes, frameType } from "../support/carriers/http2-frames.ts";
import { randomFrame } from "../support/http2/random-frame.ts";

/** Sends a random sequence of frames. @returns what went wrong, if anything did */
export async function endsWell(seed: number): Promise<string | undefined> {
  const dice = new Dice(seed);
  const [client, server]: Duplex[] = duplexPair();
  if (client === undefined || server === undefined) throw new Error("there is no pair");
  const reply: Buffer[] = [];
  let faults = 0;
  let closed = false;
  const open = new Set<Http2Stream>();
  const budget = new BacklogBudget(1_000_000);
  const connection = new Http2Connection(server, {
    limits: { ...defaultHttp2Limits, concurrentStreams: 4, streamWindowBytes: 70_000, connectionWindowBytes: 100_000 },
    budget,
    onStream: (stream) => {
      dice.oneOf([echo, pipe, late, early])(stream);
      watch(stream, open);
    },
    onClose: () => (closed = true),
    onFault: () => (faults += 1),
  });
  client.on("data", (bytes: Buffer) => reply.push(bytes));
  client.on("error", () => {});
  client.write(Buffer.concat([clientPreface, frameBytes(frame(frameType.settings, 0, 0))]));
  for (let writes = 1 + dice.roll(4); writes > 0; writes--) {
    client.write(Buffer.concat(Array.from({ length: 1 + dice.roll(8) }, () => randomFrame(dice))));
    if (dice.roll(8) === 0) connection.drain();
    await nextTurn();
  }
  if (dice.roll(2) === 0) client.end();
  await nextTurn();
  server.destroy();
  await nextTurn();
  await nextTurn();
  client.destroy();
  if (faults > 0) return "a receiver of the test's has thrown";
  if (!closed) return "the connection is not over";
  if (![...open].every(isComplete)) return "a stream was not told of its end";
  if (budget.bytes !== 0) return `${String(budget.bytes)} bytes are still held to be sent`;
  return problemOf(Buffer.concat(reply));
}

/** Answers in a later turn. */
function late(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setImmediate(() => answer(stream, Buffer.alloc(40_000)));
}

/** Answers and has had enough. */
function early(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  answer(stream);
  stream.reset(ErrorCode.noError);
}

/** Keeps a stream among those that are open until it is told that it is reset. */
function watch(stream: Http2Stream, open: Set<Http2Stream>): void {
  const { receiver } = stream;
  if (stream.closed || receiver === undefined) return;
  open.add(stream);
  stream.receiver = {
    body: receiver.body,
    onReset: (code) => {
      receiver.onReset(code);
      open.delete(stream);
    },
    onWritable: () => receiver.onWritable(),
  };
}

function isComplete({ closed, localEnded }: Http2Stream): boolean {
  return closed && localEnded;
}

/** What is wrong with what the engine said. */
function problemOf(reply: Buffer): string | undefined {
  let at = 0;
  let ended = false;
  while (at < reply.byteLength) {
    if (ended) return "frames follow the GOAWAY for an error";
    if (reply.byteLength - at < 9) return "a frame's head is cut short";
    const length = reply.readUIntBE(at, 3);
    const type = reply.readUInt8(at + 3);
    const streamId = reply.readUInt32BE(at + 5);
    const payload = reply.subarray(at + 9, at + 9 + length);
    if (payload.byteLength < length) return "a frame is cut short";
    if (length > 16_384) return "a frame is larger than the client takes";
    if (type > frameType.continuation || type === frameType.pushPromise) return `a frame has type ${String(type)}`;
    if (streamId !== 0 && streamId % 2 === 0) return "a frame is on a stream of the server's";
    if (type === frameType.goAway) {
      const code = payload.readUInt32BE(4);
      if (code > ErrorCode.http11Required) return `GOAWAY has the code ${String(code)}`;
      if (code === ErrorCode.internalError) return "the engine has a fault";
      ended = code !== ErrorCode.noError;
    }
    at += 9 + length;
  }
  return undefined;
}
