import { Duplex, duplexPair } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { ClientConnection, connectionLost, serverUnresponsive } from "../../../src/engine/http2-client.ts";
import { defaultHttp2Limits } from "../../../src/engine/http2/http2-limits.ts";
import { StableFields } from "../../../src/engine/http2/hpack/encoder.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, type Frame, frame, frameBytes, frameFlag, frameType, headersFrame, readFrames
} from "@protoport/testing/http";
import { waitSomeTurns } from "@protoport/testing/process";

const ignore = (): undefined => undefined;

// Tests when a client sends PINGs to a server that is silent during calls. Silence is checked every 5 s.

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());
const idleSeconds = 3_600;

/** A connection with one call to a server that acknowledges PINGs until it is frozen, and otherwise is silent. */
class SilentServer implements Disposable {
  /** Seconds after the call at which a PING arrived. */
  readonly pingsAt: number[] = [];
  /** The codes with which the call was reset. */
  readonly resets: number[] = [];
  isUnresponsive = false;
  /** Whether the client has sent GOAWAY. */
  hasGoAway = false;
  readonly #socket: Duplex;
  readonly #client: Duplex;
  readonly #connection: ClientConnection;
  readonly #startedAtMs = performance.now();

  /** @param wrap - returns what the client writes to and reads from, instead of its end of the pair */
  constructor(keepaliveMs: number, wrap: (client: Duplex) => Duplex = (client) => client) {
    const [client, server]: Duplex[] = duplexPair();
    if (client === undefined || server === undefined) throw new Error("duplexPair returned no pair");
    this.#client = client;
    this.#socket = server;
    this.#connection = new ClientConnection(wrap(client), {
      // Long, so that most tests end before an idle connection is closed.
      limits: { ...defaultHttp2Limits, idleTimeoutMs: idleSeconds * 1_000 },
      budget: new BacklogBudget(1_000_000),
      keepaliveMs,
      streamsBeforeSettings: 1,
      onReady: () => undefined,
      onStreamAvailable: () => undefined,
      onRetired: () => undefined,
      onBusy: () => undefined,
      onClose: () => undefined,
      onFault: () => undefined,
    });
    const settings = frame(frameType.settings, 0, 0);
    this.send(settings, { ...settings, flags: frameFlag.ack });
    void this.#respond();
    this.call();
  }

  /** Starts a call or a watch, and returns a function that cancels it. */
  call(kind: "call" | "watch" = "call"): () => void {
    const stable = new StableFields([":method", "POST", ":path", "/"]);
    const onReset = (code: number): unknown => this.resets.push(code);
    const receiver = { onHead: ignore, onData: ignore, onEnd: ignore, onWritable: ignore, onReset };
    const stream = this.#connection.open(stable, Buffer.alloc(0), receiver, kind);
    return () => stream.reset(8);
  }

  send(...frames: readonly Frame[]): void {
    this.#socket.write(Buffer.concat(frames.map(frameBytes)));
  }

  /** Lets this many seconds pass. */
  async pass(seconds: number): Promise<void> {
    for (let at = 0; at < seconds; at += 5) {
      await waitSomeTurns();
      vi.advanceTimersByTime(5_000);
    }
    await waitSomeTurns();
  }

  close(): void {
    this.#socket.destroy();
    this.#client.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #respond(): Promise<void> {
    await new Promise((resolve) => this.#socket.once("readable", resolve));
    this.#socket.read(clientPreface.byteLength);
    const stream = readFrames(this.#socket);
    for (let next = await stream.readFrame(); next !== undefined; next = await stream.readFrame()) {
      if (next.type === frameType.goAway) this.hasGoAway = true;
      if (next.type !== frameType.ping) continue;
      this.pingsAt.push(Math.round((performance.now() - this.#startedAtMs) / 1_000));
      if (!this.isUnresponsive) this.send({ ...next, flags: frameFlag.ack });
    }
  }
}

/** Returns a socket that buffers each write until the event loop's next turn, as TLS sockets do. */
function deferWrites(client: Duplex): Duplex {
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => {
      client.write(chunk);
      setImmediate(done);
    },
  });
  client.on("data", (chunk) => socket.push(chunk)).on("end", () => socket.push(null));
  return socket;
}

test("keepalive PINGs become rarer while the server only acknowledges them", async () => {
  using server = new SilentServer(20_000);
  await server.pass(700);
  expect([server.pingsAt, server.resets]).toEqual([[20, 40, 350, 660], []]);
});

test.each([
  { name: "a header", frames: [headersFrame(1, [[":status", "200"]])] },
  { name: "DATA", frames: [headersFrame(1, [[":status", "200"]]), dataFrame(1, Buffer.alloc(5))] },
])("the keepalive interval is short again after $name from the server", async ({ frames }) => {
  using server = new SilentServer(20_000);
  await server.pass(100);
  server.send(...frames);
  await server.pass(100);
  expect(server.pingsAt).toEqual([20, 40, 120, 140]);
});

test("the keepalive interval is short again after a cancelled call's header", async () => {
  using server = new SilentServer(20_000);
  const cancel = server.call();
  await server.pass(100);
  cancel();
  server.send(headersFrame(3, [[":status", "200"]]));
  await server.pass(100);
  expect(server.pingsAt).toEqual([20, 40, 120, 140]);
});

test("DATA from the server delays the next PING", async () => {
  using server = new SilentServer(20_000);
  server.send(headersFrame(1, [[":status", "200"]]));
  for (let at = 0; at < 60; at += 15) {
    await server.pass(15);
    server.send(dataFrame(1, Buffer.alloc(5)));
  }
  expect(server.pingsAt).toEqual([]);
});

test("a keepalive interval above 310 s does not grow", async () => {
  using server = new SilentServer(400_000);
  await server.pass(1_300);
  expect(server.pingsAt).toEqual([400, 800, 1_200]);
});

test.each([
  { name: "before the first PING", passed: 0, lostAfter: 45 },
  { name: "after two PINGs", passed: 100, lostAfter: 275 },
])("a call to a server that freezes $name fails after $lostAfter s", async ({ passed, lostAfter }) => {
  using server = new SilentServer(20_000);
  await server.pass(passed);
  server.isUnresponsive = true;
  await server.pass(lostAfter - 5);
  expect(server.resets).toEqual([]);
  await server.pass(5);
  expect(server.resets).toEqual([serverUnresponsive]);
});

test("writes that the socket buffers do not delay the ping timeout", async () => {
  using server = new SilentServer(20_000, deferWrites);
  server.isUnresponsive = true;
  for (let at = 0; at < 60; at += 5) {
    server.call();
    await server.pass(5);
  }
  expect(server.pingsAt).toEqual([20]);
  expect(server.resets).not.toEqual([]);
  expect(new Set(server.resets)).toEqual(new Set([serverUnresponsive]));
});

test("a call keeps the connection open after a watch has ended", async () => {
  using server = new SilentServer(20_000);
  const endWatch = server.call("watch");
  await server.pass(5);
  endWatch();
  await server.pass(idleSeconds + 60);
  expect(server.hasGoAway).toBe(false);
});

test("a closed connection fails the call with connectionLost", async () => {
  using server = new SilentServer(20_000);
  await server.pass(5);
  server.close();
  await waitSomeTurns();
  expect(server.resets).toEqual([connectionLost]);
});
