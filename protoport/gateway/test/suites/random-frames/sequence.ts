import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { defaultHttp2Limits, Http2Connection, type Http2Stream } from "../../../src/engine/http2/index.ts";
import { Dice } from "../../../../testing/src/dice.ts";
import { answer, echo, pipe, receiving } from "../../../../testing/src/http2/http2-engine.ts";
import { clientPreface, frame, frameBytes, frameType } from "../../../../testing/src/http/http2-frames.ts";
import { randomFrame } from "../../../../testing/src/http2/random-frame.ts";
import { problemOf } from "./frames-problem.ts";

/** Sends random frames to the server. @returns the problem, if any */
export async function serverProblem(seed: number): Promise<string | undefined> {
  const dice = new Dice(seed);
  const [client, server]: Duplex[] = duplexPair();
  if (client === undefined || server === undefined) throw new Error("duplexPair returned no pair");
  const output: Buffer[] = [];
  let faults = 0;
  let closed = false;
  const open = new Set<Http2Stream>();
  const budget = new BacklogBudget(1_000_000);
  const connection = new Http2Connection(server, {
    limits: { ...defaultHttp2Limits, concurrentStreams: 4, streamWindowBytes: 70_000, connectionWindowBytes: 100_000 },
    budget,
    onStream: (stream) => {
      dice.oneOf([echo, pipe, respondLate, respondEarly])(stream);
      trackOpen(stream, open);
    },
    onClose: () => (closed = true),
    onFault: () => (faults += 1),
  });
  client.on("data", (bytes: Buffer) => output.push(bytes));
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
  if (faults > 0) return "a receiver of the test has thrown";
  if (!closed) return "the connection is not closed";
  if (![...open].every(isComplete)) return "a stream got no end";
  if (budget.bytes !== 0) return `${String(budget.bytes)} bytes are still buffered`;
  return problemOf(Buffer.concat(output));
}

/** Responds in a later turn. */
function respondLate(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setImmediate(() => answer(stream, Buffer.alloc(40_000)));
}

/** Responds, and then resets the stream. */
function respondEarly(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  answer(stream);
  stream.reset(ErrorCode.noError);
}

/** Keeps a stream in `open` until it is reset. */
function trackOpen(stream: Http2Stream, open: Set<Http2Stream>): void {
  const { receiver } = stream;
  if (stream.closed || receiver === undefined) return;
  open.add(stream);
  stream.receiver = {
    body: receiver.body,
    onReset: (code, byPeer) => {
      receiver.onReset(code, byPeer);
      open.delete(stream);
    },
    onWritable: () => receiver.onWritable(),
  };
}

function isComplete({ closed, localEnded }: Http2Stream): boolean {
  return closed && localEnded;
}
