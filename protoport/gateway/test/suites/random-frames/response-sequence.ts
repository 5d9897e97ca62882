import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { type ResponseReceiver, ClientConnection, type ClientStream } from "../../../src/engine/http2-client/index.ts";
import { defaultHttp2Limits, StableFields } from "../../../src/engine/http2/index.ts";
import { Dice } from "../../../../testing/src/dice.ts";
import { clientPreface, frame, frameBytes, frameType } from "../../../../testing/src/http/http2-frames.ts";
import { randomResponseFrame } from "../../../../testing/src/http2/random-frame.ts";
import { problemOf } from "./frames-problem.ts";

const stable = [0, 1, 2].map((i) => new StableFields([":method", "POST", ":path", `/${i}`, "te", "trailers"]));

/** Responds to calls with random frames. @returns the problem on the client's side, if any */
export async function clientProblem(seed: number): Promise<string | undefined> {
  const dice = new Dice(seed);
  const [client, server]: Duplex[] = duplexPair();
  if (client === undefined || server === undefined) throw new Error("duplexPair returned no pair");
  const output: Buffer[] = [];
  let faults = 0;
  let closed = false;
  const calls: RandomCall[] = [];
  const budget = new BacklogBudget(1_000_000);
  const connection = new ClientConnection(client, {
    limits: { ...defaultHttp2Limits, concurrentStreams: 4, streamWindowBytes: 70_000, connectionWindowBytes: 100_000 },
    budget,
    keepaliveMs: 60_000,
    streamsBeforeSettings: 2,
    onReady: () => undefined,
    onStreamAvailable: () => undefined,
    onRetired: () => undefined,
    onBusy: () => undefined,
    onClose: () => (closed = true),
    onFault: () => (faults += 1),
  });
  server.on("data", (bytes: Buffer) => output.push(bytes));
  server.on("error", () => {});
  if (dice.roll(16) > 0) server.write(frameBytes(frame(frameType.settings, 0, 0)));
  for (let writes = 1 + dice.roll(4); writes > 0; writes--) {
    for (let i = dice.roll(3); i > 0; i--) {
      if (connection.availableStreams > 0) calls.push(new RandomCall(dice, connection));
    }
    server.write(Buffer.concat(Array.from({ length: 1 + dice.roll(8) }, () => randomResponseFrame(dice))));
    if (dice.roll(8) === 0) connection.drain();
    await nextTurn();
    if (dice.roll(4) === 0) calls[0]?.cancel();
  }
  if (dice.roll(2) === 0) server.end();
  await nextTurn();
  client.destroy();
  await nextTurn();
  await nextTurn();
  server.destroy();
  if (faults > 0) return "a receiver of the test has thrown";
  if (!closed) return "the connection is not closed";
  if (connection.availableStreams > 0) return "a closed connection has available streams";
  if (connection.calls > 0) return "a closed connection has calls";
  if (budget.bytes !== 0) return `${String(budget.bytes)} bytes are still buffered`;
  const problem = calls.map((call) => call.problem).find((found) => found !== undefined);
  if (problem !== undefined) return problem;
  const bytes = Buffer.concat(output);
  if (!clientPreface.equals(bytes.subarray(0, clientPreface.byteLength))) return "the first bytes are not the preface";
  return problemOf(bytes.subarray(clientPreface.byteLength));
}

/** A call that checks the order of its response's events. */
class RandomCall implements ResponseReceiver {
  readonly #stream: ClientStream;
  readonly #keepsBytes: boolean;
  #state: "nothing" | "head" | "end" = "nothing";
  #wrong: string | undefined;

  constructor(dice: Dice, connection: ClientConnection) {
    this.#keepsBytes = dice.roll(2) === 0;
    this.#stream = connection.open(dice.oneOf(stable), Buffer.alloc(0), this);
    if (dice.roll(2) === 0) this.#stream.sendData(Buffer.alloc(dice.roll(100_000)));
    if (dice.roll(4) > 0) this.#stream.end(Buffer.alloc(dice.roll(2) * dice.roll(70_000)));
  }

  /** The first wrong event, or a missing end. */
  get problem(): string | undefined {
    return this.#wrong ?? (this.#state === "end" && this.#stream.closed ? undefined : "a call got no end");
  }

  cancel(): void {
    this.#stream.reset(ErrorCode.cancel);
  }

  onHead(_head: unknown, endStream: boolean): void {
    this.#advance("nothing", endStream ? "end" : "head", "a header");
  }

  onData(piece: Uint8Array): void {
    this.#advance("head", "head", "data");
    if (!this.#keepsBytes) this.#stream.consumed(piece.byteLength);
  }

  onEnd(): void {
    this.#advance("head", "end", "an end");
  }

  onReset(): void {
    if (this.#state === "end") this.#wrong ??= "a reset came after the end";
    this.#state = "end";
  }

  onWritable(): void {
    if (this.#state === "end") this.#wrong ??= "a call got onWritable after its end";
  }

  #advance(after: "nothing" | "head", next: "head" | "end", what: string): void {
    if (this.#state !== after) this.#wrong ??= `${what} came after ${this.#state}`;
    this.#state = next;
  }
}
