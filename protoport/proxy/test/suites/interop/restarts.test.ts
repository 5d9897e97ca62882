import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { beforeAll, expect, test } from "vitest";
import { createUpstream } from "../../../src/upstreams/index.ts";
import { fieldValue, type Http2Connection, openHttp2, readHttp2Response } from "@protoport/testing/http";
import { buildLimitMs, waitLimitMs, within } from "@protoport/testing/process";
import type { GrpcProgram, GrpcServerProcess } from "../../../../testing/src/gateway/grpc-programs.ts";
import { buildGo, echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { startProxy } from "../../../../testing/src/gateway/proxy.ts";
import { message, stream, unary } from "./legacy-calls.ts";

let program: GrpcProgram;
beforeAll(async () => void (program = await buildGo("echo")), buildLimitMs);

const start = (...args: readonly string[]): Promise<GrpcServerProcess> =>
  startGrpcProgram({ ...program, args: [...args, ...program.args] });

/** Counts the statuses of calls that are made until the test ends the load. */
class Load {
  readonly #connection: Http2Connection;
  readonly #callers: Promise<void>[];
  #ended = false;
  readonly unary = new Map<string | undefined, number>();
  readonly streams = new Map<string | undefined, number>();

  constructor(connection: Http2Connection) {
    this.#connection = connection;
    this.#callers = [
      ...Array.from({ length: 20 }, () => this.#repeat(this.unary, () => connection.exchange(unary))),
      ...Array.from({ length: 10 }, () => this.#repeat(this.streams, () => this.#stream())),
    ];
  }

  async end(): Promise<void> {
    this.#ended = true;
    await within(Promise.all(this.#callers), "the last calls");
  }

  async #repeat(counts: Load["unary"], call: () => ReturnType<typeof readHttp2Response>): Promise<void> {
    while (!this.#ended) {
      const response = await call();
      const status = fieldValue([...response.header, ...response.trailer], "grpc-status");
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  }

  /** Sends a message every 20 ms, and ends the stream after 100 messages or with the load. */
  async #stream(): ReturnType<typeof readHttp2Response> {
    const call = this.#connection.open(stream, { endStream: false });
    const end = readHttp2Response(call);
    for (let sent = 0; sent < 100 && !this.#ended && !call.closed; sent++) {
      call.write(message);
      await pause(20);
    }
    call.end();
    return await end;
  }
}

const statusesOf = (counts: Load["unary"]): readonly (string | undefined)[] =>
  [...counts.keys()].toSorted((one, other) => Number(one) - Number(other));

test.each(echoServers.filter(({ argsAt }) => argsAt !== undefined))(
  "no unary call fails while servers of $name restart one by one",
  async ({ name, build, argsAt }) => {
    await using opened = new AsyncDisposableStack();
    const built = await build();
    const startAt = async (port: number): Promise<GrpcServerProcess> =>
      opened.use(await startGrpcProgram({ ...built, args: argsAt?.(port, built.args) ?? [] }));
    const servers = [await startAt(0), await startAt(0)];
    const upstream = opened.use(createUpstream({ addresses: servers.map(({ address }) => address) }));
    const proxy = opened.use(await startProxy("", sinkFiles, { upstreamOptions: { upstream } }));
    const load = new Load(opened.use(await openHttp2(proxy.address)));
    for (const { port, process } of servers) {
      // The upstream connects again after a backoff.
      await expect.poll(() => upstream.load.connections, { timeout: waitLimitMs }).toBe(2);
      // A server that stops while it accepts its first connection does not send GOAWAY.
      await pause(2_000);
      const exited = once(process, "exit");
      process.kill("SIGTERM");
      await within(exited, "the end of the server");
      await pause(500);
      await startAt(port);
    }
    // On a busy machine, no stream may have ended between the stops of the servers.
    await expect.poll(() => load.streams.has("0")).toBe(true);
    await load.end();
    expect(statusesOf(load.unary)).toEqual(["0"]);
    // Only grpc-go's server ends its streams when it stops.
    expect(load.streams.has(String(Code.Aborted))).toBe(name === "grpc-go");
    expect(statusesOf(load.streams).filter((status) => status !== String(Code.Aborted))).toEqual(["0"]);
    expect(upstream.load).toMatchObject({ calls: 0, waitingCalls: 0, servers: 2 });
  },
  buildLimitMs,
);

test.each([
  { name: "streams continue within the grace period", grace: "30s", failures: [] },
  { name: "streams fail after the grace period", grace: "1s", failures: [String(Code.Unavailable)] },
])("at the maximum connection age, $name and no unary call fails", async ({ grace, failures }) => {
  await using server = await start("-age", "300ms", "-grace", grace);
  await using upstream = createUpstream({ addresses: server.address });
  await using proxy = await startProxy("", sinkFiles, { upstreamOptions: { upstream } });
  using connection = await openHttp2(proxy.address);
  const load = new Load(connection);
  await pause(3_000);
  await load.end();
  expect(statusesOf(load.unary)).toEqual(["0"]);
  // Streams that were open when the load ended may have succeeded.
  expect(statusesOf(load.streams).filter((each) => each !== "0")).toEqual(failures);
});
