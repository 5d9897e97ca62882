import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createUpstream, type Upstream } from "../../../src/upstreams/index.ts";
import { type Http2Connection, openHttp2, readHttp2Response } from "@protoport/testing/http";
import type { GrpcServerProcess } from "../../../../testing/src/gateway/grpc-programs.ts";
import { echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { startProxy, type TestProxy } from "../../../../testing/src/gateway/proxy.ts";
import { message, stream, unary } from "./legacy-calls.ts";
import { fieldValue, type HttpRequest, exchangeHttp2, buildLimitMs, within } from "@protoport/testing";

const keepaliveMs = 2_000;
/** The tests of a server run one after the other. */
const inOrder = { concurrent: false };

const openStream = (connection: Http2Connection): { call: ClientHttp2Stream; end: Promise<string | undefined> } => {
  const call = connection.open(stream, { endStream: false });
  const end = readHttp2Response(call).then(({ header, trailer }) => fieldValue([...header, ...trailer], "grpc-status"));
  return { call, end };
};

// The servers' tests wait for keepalive intervals, so they run concurrently.
describe.concurrent.each(echoServers)("a proxy in front of $name", ({ build }) => {
  const opened = new AsyncDisposableStack();
  let server: GrpcServerProcess;
  let upstream: Upstream;
  let proxy: TestProxy;
  beforeAll(async () => {
    server = opened.use(await startGrpcProgram(await build()));
    // With the default of 20 s, the tests would take minutes. A JVM on a busy machine may need a second for a response.
    upstream = opened.use(createUpstream({ addresses: server.address, keepaliveMs }));
    proxy = opened.use(await startProxy("", sinkFiles, { upstreamOptions: { upstream } }));
  }, buildLimitMs);
  afterAll(() => opened.disposeAsync());

  const statusOf = async (request: HttpRequest): Promise<string | undefined> => {
    const response = await within(exchangeHttp2(proxy.address, request), "a response");
    return fieldValue([...response.header, ...response.trailer], "grpc-status");
  };

  test("keeps an idle stream open for five keepalive intervals", inOrder, async ({ expect: { poll } }) => {
    using connection = await openHttp2(proxy.address);
    const { call, end } = openStream(connection);
    await poll(() => upstream.load.calls).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 5 * keepaliveMs));
    expect(upstream.load).toMatchObject({ calls: 1, connections: 1 });
    call.end(message);
    expect(await within(end, "the end of the stream")).toBe("0");
  });

  test(
    "fails calls while the server is frozen, and forwards calls afterwards",
    inOrder,
    async ({ expect: { poll } }) => {
      expect(await statusOf(unary)).toBe("0");
      server.process.kill("SIGSTOP");
      try {
        // A thread of the server may still respond just after the signal.
        await poll(() => statusOf(unary), { timeout: 10_000 }).toBe(String(Code.Unavailable));
      } finally {
        server.process.kill("SIGCONT");
      }
      await poll(() => statusOf(unary), { timeout: 10_000 }).toBe("0");
    },
  );

  test("fails calls to a killed server", inOrder, async ({ expect: { poll } }) => {
    using connection = await openHttp2(proxy.address);
    const { end } = openStream(connection);
    await poll(() => upstream.load.calls).toBe(1);
    const gone = once(server.process, "exit");
    server.process.kill("SIGKILL");
    await gone;
    expect(await within(end, "the end of the stream")).toBe(String(Code.Unavailable));
    expect(await statusOf(unary)).toBe(String(Code.Unavailable));
    expect(upstream.load).toMatchObject({ calls: 0, waitingCalls: 0 });
  });
});
