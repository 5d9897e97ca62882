import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { Socket } from "node:net";
import { inspect } from "node:util";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createConnectionAges } from "../../src/engine/connection-ages.ts";
import type { Admit } from "../../src/index.ts";
// oxfmt-ignore
import { type Address, createTestGateway, fieldValue, openGreenhouse, openHttp1, openHttp2, startGreenhouse,
  waterBedProcedure, within } from "@protoport/testing";

const water = { httpMethod: "POST", path: "/beds/7:water", header: [["content-type", "application/json"]] as const };
const wholeWater = { ...water, body: Buffer.from("{}") };
const headers = Object.fromEntries(water.header);

/** A client, with its own way to reconnect. */
interface Caller extends Disposable {
  /** Sends one call, and returns its status, or the client's error if the call was lost. */
  call(): Promise<unknown>;
}

function overAgent({ address, port }: Address): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  const options = { agent, host: address, port, path: water.path, method: "POST", headers };
  const call = (): Promise<unknown> =>
    new Promise((resolve) => {
      const request = httpRequest(options, (answer) => answer.resume().on("end", () => resolve(answer.statusCode)));
      request.on("error", resolve).end("{}");
    });
  return { call, [Symbol.dispose]: () => agent.destroy() };
}

function overFetch({ address, port }: Address): Caller {
  const call = async (): Promise<unknown> => {
    const init = { method: "POST", headers, body: "{}" };
    const response = await fetch(`http://${address}:${String(port)}${water.path}`, init);
    await response.text();
    return response.status;
  };
  return { call, [Symbol.dispose]: () => {} };
}

/**
 * Consecutive node:http2 sessions, of which a new one starts as soon as the server sends GOAWAY on the previous one.
 */
function overSessions({ address, port }: Address): Caller {
  let session: ClientHttp2Session | undefined;
  const open = (): ClientHttp2Session => {
    const opened = connect(`http://${address}:${String(port)}`);
    const forget = (): void => void (session === opened && (session = undefined));
    return opened.on("goaway", forget).on("close", forget);
  };
  const call = (): Promise<unknown> =>
    new Promise((resolve) => {
      session ??= open();
      const stream = session.request({ ":method": "POST", ":path": water.path, ...headers });
      let status: unknown;
      stream.on("response", (header) => (status = header[":status"])).on("error", resolve);
      stream.resume().on("end", () => resolve(status));
      stream.end("{}");
    });
  return { call, [Symbol.dispose]: () => session?.destroy() };
}

const asIs = (bytes: Buffer): Buffer => bytes;

function overGrpcJs({ address, port }: Address): Caller {
  const client = new Client(`${address}:${String(port)}`, credentials.createInsecure(), {
    // The client waits this long before it reconnects.
    "grpc.initial_reconnect_backoff_ms": 100,
  });
  const waiting = new Metadata({ waitForReady: true });
  const call = (): Promise<unknown> =>
    new Promise((resolve) => {
      client.makeUnaryRequest(waterBedProcedure, asIs, asIs, Buffer.of(), waiting, (error) => resolve(error ?? 200));
    });
  return { call, [Symbol.dispose]: () => client.close() };
}

// An old connection without calls closes after a second. A caller is never idle that long, even on a slow machine.
describe("maxConnectionAgeMs", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  const callers: readonly { readonly name: string; readonly open: (address: Address) => Caller }[] = [
    { name: "over node:http with an agent", open: overAgent },
    { name: "over fetch", open: overFetch },
    { name: "over node:http2", open: overSessions },
    { name: "over grpc-js", open: overGrpcJs },
  ];
  test.each(callers)("closes connections $name without failing a call", async ({ open }) => {
    const connections = new Set<object>();
    const admit: Admit = ({ connection }) => void connections.add(connection);
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { admit }, { maxConnectionAgeMs: 50 });
    using client = open(greenhouse.address);
    const statuses = new Set<unknown>();
    const callOn = async (): Promise<void> => {
      // A client that has lost one call might also lose those that follow immediately.
      while (connections.size < 6 && [...statuses].every((status) => status === 200)) {
        statuses.add(await client.call());
        vi.advanceTimersByTime(10);
      }
    };
    await within(Promise.all([callOn(), callOn()]), "six connections");
    expect([...statuses]).toEqual([200]);
  });
});

describe.concurrent("a connection that has reached its maximum age", () => {
  test("finishes the open call", async () => {
    const slow = Promise.withResolvers<{ note: string }>();
    await using greenhouse = await startGreenhouse({ waterBed: () => slow.promise }, {}, { maxConnectionAgeMs: 10 });
    using http1 = await openHttp1(greenhouse.address);
    using http2 = await openHttp2(greenhouse.address);
    const going = once(http2.session, "goaway");
    http1.request(wholeWater);
    const answer = http2.exchange(wholeWater);
    await within(going, "GOAWAY");
    slow.resolve({ note: "done" });
    expect(String((await answer).body)).toContain("done");
    expect(String((await http1.readResponse()).body)).toContain("done");
    await within(once(http2.session, "close"), "the end of the session");
  });

  test("sends connection: close in its next response, then closes", async () => {
    await using http1 = await openGreenhouse(openHttp1, { waterBed: () => ({}) }, {}, { maxConnectionAgeMs: 50 });
    for (let connection: string | undefined; connection !== "close";) {
      http1.request(wholeWater);
      const { httpStatus, header } = await http1.readResponse();
      expect(httpStatus).toBe(200);
      connection = fieldValue(header, "connection");
    }
    expect(await http1.atEnd()).toBe(true);
  });

  test.each([
    { name: "HTTP/1.1", open: async (address: Address) => (await openHttp1(address)).socket.resume() },
    { name: "HTTP/2", open: async (address: Address) => (await openHttp2(address)).session },
  ])("closes over $name if it is idle", async ({ open }) => {
    await using greenhouse = await startGreenhouse({}, {}, { maxConnectionAgeMs: 10 });
    const connection = await open(greenhouse.address);
    if (connection instanceof Socket) connection.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await within(once(connection, connection instanceof Socket ? "end" : "close"), "the end of the connection");
  });

  test.each([
    { name: "HTTP/1.1", open: openHttp1 },
    { name: "HTTP/2", open: openHttp2 },
  ])("over $name is destroyed with its calls after the grace period", async ({ open }) => {
    const reasons: unknown[] = [];
    const ended = Promise.withResolvers<{ note: string }>();
    await using greenhouse = await startGreenhouse(
      {
        waterBed: (_, { signal }) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            ended.resolve({ note: "late" });
          });
          return ended.promise;
        },
      },
      {},
      { maxConnectionAgeMs: 10, maxConnectionAgeGraceMs: 10 },
    );
    using connection = await open(greenhouse.address);
    if ("request" in connection) connection.request(wholeWater);
    else void connection.exchange(wholeWater).catch(() => {});
    await within(ended.promise, "the end of the call");
    expect(reasons).toMatchObject([{ message: expect.stringContaining("the client disconnected") }]);
  });
});

/** Adds a connection. Returns the times in ms, up to `untilMs`, at which it is first retired, and destroyed. */
function endsOf(options: Parameters<typeof createConnectionAges>[0], untilMs: number): readonly unknown[] {
  const ends: { retired?: number; destroyed?: number } = {};
  const startMs = performance.now();
  const retire = (): void => void (ends.retired ??= performance.now() - startMs);
  const destroy = (): void => void (ends.destroyed ??= performance.now() - startMs);
  createConnectionAges(options)?.add(new Socket(), { busy: true, requests: 1, drain: () => {}, retire, destroy });
  vi.advanceTimersByTime(untilMs);
  return [ends.retired, ends.destroyed];
}

describe("the age limit of a connection", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test.each([
    ["90 % of the maximum with the least jitter", 0, [100_000, 50_000], [90_000, 140_000]],
    ["the configured maximum without jitter", 0.5, [100_000, 50_000], [100_000, 150_000]],
    ["above the maximum with positive jitter", 0.75, [100_000, 50_000], [105_000, 155_000]],
    ["exceeded by at most 10 %", 0.5, [1000, 35], [1000, 1040]],
    ["infinite for open calls if no grace period is set", 0.5, [1000, undefined], [1000, undefined]],
  ])("is %s", (_name, random, [maxConnectionAgeMs, maxConnectionAgeGraceMs], want) => {
    vi.spyOn(Math, "random").mockReturnValue(random);
    expect(endsOf({ maxConnectionAgeMs, maxConnectionAgeGraceMs }, 200_000)).toEqual(want);
  });

  test.each([undefined, Number.POSITIVE_INFINITY, 31_536_000_000, 2 ** 31, Number.MAX_SAFE_INTEGER])(
    "set to %s closes no connection within ten minutes",
    (maxConnectionAgeMs) =>
      expect(endsOf({ maxConnectionAgeMs, maxConnectionAgeGraceMs: 1 }, 600_000)).toEqual([undefined, undefined]),
  );

  test("is checked only while the connection is open", () => {
    const [closed, open] = [vi.fn<() => void>(), vi.fn<() => void>()];
    const sockets = [new Socket(), new Socket()];
    const ages = createConnectionAges({ maxConnectionAgeMs: 1000 });
    for (const [i, retire] of [closed, open].entries())
      ages?.add(sockets[i] ?? new Socket(), { busy: true, requests: 1, drain: () => {}, retire, destroy: () => {} });
    sockets[0]?.emit("close");
    vi.advanceTimersByTime(1200);
    expect([closed.mock.calls.length, open.mock.calls.length > 0, vi.getTimerCount()]).toEqual([0, true, 1]);
    sockets[1]?.emit("close");
    expect(vi.getTimerCount()).toBe(0);
    expect(endsOf({ maxConnectionAgeMs: 1000, maxConnectionAgeGraceMs: 1000 }, 3000)).not.toContain(undefined);
  });

  test("applies to a connection that opens after all others have closed", () => {
    const retired = [vi.fn<() => void>(), vi.fn<() => void>()];
    const ages = createConnectionAges({ maxConnectionAgeMs: 1000 });
    for (const retire of retired) {
      const socket = new Socket();
      ages?.add(socket, { busy: true, requests: 1, drain: () => {}, retire, destroy: () => {} });
      vi.advanceTimersByTime(1200);
      socket.emit("close");
    }
    expect([retired.map(({ mock }) => mock.calls.length > 0), vi.getTimerCount()]).toEqual([[true, true], 0]);
  });

  test.each([
    { name: "maxConnectionAgeMs", value: 0 },
    { name: "maxConnectionAgeMs", value: Number.NaN },
    { name: "maxConnectionAgeMs", value: -1 },
    { name: "maxConnectionAgeMs", value: "5" },
    { name: "maxConnectionAgeGraceMs", value: 0 },
    { name: "maxConnectionAgeGraceMs", value: "5" },
    { name: "maxConnectionAgeGraceMs", value: Number.NaN },
  ])("$name: $value is refused by listen()", async ({ name, value }) => {
    vi.useRealTimers();
    const gateway = createTestGateway({ routes: () => {} });
    const problem = `${name} must be a number above 0, got ${inspect(value)}`;
    await expect(gateway.listen({ [name]: value })).rejects.toThrow(problem);
    await gateway.listen();
    await gateway.close();
  });
});
