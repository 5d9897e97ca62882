import { Readable } from "node:stream";
import { Code, createClient } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { GreenhouseService, outcomeOf } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../src/client/index.ts";
import { frameFlag, headersFrame } from "../../../testing/src/http/http2-frames.ts";
import {
  envelope,
  grpcHead,
  grpcResponse,
  type ScriptedConnection,
  startScriptedServer,
} from "../../../testing/src/gateway/scripted-http2-server.ts";

afterEach(() => void vi.useRealTimers());

const retry = {
  maxAttempts: 2,
  initialBackoffMs: 1,
  maxBackoffMs: 60_000,
  backoffMultiplier: 1,
  retryableCodes: [Code.Unavailable],
};

const steps = {
  fail: (connection: ScriptedConnection, id: number) =>
    connection.send(headersFrame(id, [...grpcHead, ["grpc-status", "14"]], frameFlag.endStream)),
  respondEmpty: (connection: ScriptedConnection, id: number) =>
    connection.send(...grpcResponse(id, envelope(new Uint8Array()))),
} as const;

test("a retried client stream half-closes on each attempt", async () => {
  await using server = await startScriptedServer({
    request: (connection, id) => steps[connection.requests === 1 ? "fail" : "respondEmpty"](connection, id),
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  const call = createClient(GreenhouseService, transport).recordReadings(Readable.from([{ sensor: "a" }]));
  expect(await outcomeOf(call)).toBe("ok");
});

test("a call that is cancelled before its retry is not sent again", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  await using server = await startScriptedServer({ request: steps.fail });
  await using transport = createGrpcTransport({
    baseUrl: server.baseUrl,
    retry: { ...retry, initialBackoffMs: 60_000 },
  });
  const controller = new AbortController();
  const call = createClient(GreenhouseService, transport).waterBed({}, { signal: controller.signal });
  await expect.poll(() => server.requests).toBe(1);
  await expect.poll(() => vi.getTimerCount()).toBeGreaterThan(0);
  controller.abort();
  await expect(call).rejects.toMatchObject({ code: Code.Canceled });
  expect(vi.getTimerCount()).toBe(0);
});
