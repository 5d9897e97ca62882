import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createUpstream, type Upstream } from "../../../src/upstreams/index.ts";
import { fieldValue, type HttpRequest } from "../../../../testing/src/http/exchange.ts";
import { exchangeHttp2, type Http2Connection, openHttp2, readHttp2Response } from "@protoport/testing/http";
import { buildLimitMs, within } from "@protoport/testing/process";
import {
  echoServers,
  type GrpcServerProcess,
  sinkFiles,
  startGrpcProgram,
} from "../../../../testing/src/gateway/grpc-programs.ts";
import { startProxy, type TestProxy } from "../../../../testing/src/gateway/proxy.ts";
import { message, stream, unary } from "./legacy-calls.ts";

// Servers from other implementations are silent, freeze, or are killed.

/** Opens a stream without messages, and returns a promise for its status. */
const openStream = (connection: Http2Connection): { call: ClientHttp2Stream; end: Promise<string | undefined> } => {
  const call = connection.open(stream, { endStream: false });
  const end = readHttp2Response(call).then((response) =>
    fieldValue([...response.header, ...response.trailer], "grpc-status"),
  );
  return { call, end };
};

describe.each(echoServers)("a proxy in front of $name", ({ build }) => {
  const opened = new AsyncDisposableStack();
  let server: GrpcServerProcess;
  let upstream: Upstream;
  let proxy: TestProxy;

  beforeAll(async () => {
    server = opened.use(await startGrpcProgram(await build()));
    // With the default of 20 s, the tests would take minutes.
    upstream = opened.use(createUpstream({ addresses: server.address, keepaliveMs: 1_000 }));
    proxy = opened.use(await startProxy("", sinkFiles, { upstreamOptions: { upstream } }));
  }, buildLimitMs);

  afterAll(() => opened.disposeAsync());

  const statusOf = async (request: HttpRequest): Promise<string | undefined> => {
    const response = await within(exchangeHttp2(proxy.address, request), "a response");
    return fieldValue([...response.header, ...response.trailer], "grpc-status");
  };

  test("keeps an idle stream open for five keepalive intervals", async () => {
    using connection = await openHttp2(proxy.address);
    const { call, end } = openStream(connection);
    await expect.poll(() => upstream.load.calls).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(upstream.load).toMatchObject({ calls: 1, connections: 1 });
    call.end(message);
    expect(await within(end, "the end of the stream")).toBe("0");
  });

  test("fails calls while the server is frozen, and forwards calls afterwards", async () => {
    expect(await statusOf(unary)).toBe("0");
    server.process.kill("SIGSTOP");
    try {
      expect(await statusOf(unary)).toBe(String(Code.Unavailable));
    } finally {
      server.process.kill("SIGCONT");
    }
    await expect.poll(() => statusOf(unary), { timeout: 10_000 }).toBe("0");
  });

  test("fails calls to a killed server", async () => {
    using connection = await openHttp2(proxy.address);
    const { end } = openStream(connection);
    await expect.poll(() => upstream.load.calls).toBe(1);
    const gone = once(server.process, "exit");
    server.process.kill("SIGKILL");
    await gone;
    expect(await within(end, "the end of the stream")).toBe(String(Code.Unavailable));
    expect(await statusOf(unary)).toBe(String(Code.Unavailable));
    expect(upstream.load).toMatchObject({ calls: 0, waitingCalls: 0 });
  });
});
