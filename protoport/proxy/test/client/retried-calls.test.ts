import { Readable } from "node:stream";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport } from "../../src/client/index.ts";
import { Retries } from "../../src/client/retries.ts";
import { frameFlag, headersFrame, resetFrame } from "../../../testing/src/http/http2-frames.ts";
import { outcomeOf, watered } from "../../../testing/src/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcHead,
  grpcResponse,
  type ScriptedConnection,
  type ScriptedServer,
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
  refuse: (connection: ScriptedConnection, id: number) => connection.send(resetFrame(id, 7)),
  fail: (connection: ScriptedConnection, id: number) =>
    connection.send(headersFrame(id, [...grpcHead, ["grpc-status", "14"]], frameFlag.endStream)),
  respond: (connection: ScriptedConnection, id: number) => connection.send(...grpcResponse(id, watered)),
  respondEmpty: (connection: ScriptedConnection, id: number) =>
    connection.send(...grpcResponse(id, envelope(new Uint8Array()))),
} as const;

function startAttempts(attempts: readonly (keyof typeof steps)[]): Promise<ScriptedServer> {
  return startScriptedServer({
    request: (connection, id) => steps[attempts[connection.requests - 1] ?? "respond"](connection, id),
  });
}

test.each([
  { name: "is refused once", attempts: ["refuse", "respond"], want: "ok" },
  { name: "is refused once per attempt", attempts: ["refuse", "fail", "refuse", "respond"], want: "ok" },
] as const)("a call that $name is retried transparently after each refusal", async ({ attempts, want }) => {
  await using server = await startAttempts(attempts);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
  expect(server.requests).toBe(attempts.length);
});

test("a retried client stream half-closes on each attempt", async () => {
  await using server = await startAttempts(["fail", "respondEmpty"]);
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

test("a pushback does not override an exhausted retry budget", () => {
  const retries = new Retries({ ...retry, budget: { maxTokens: 4, tokenRatio: 1 } });
  const method = GreenhouseService.method.waterBed;
  const error = new ConnectError("", Code.Unavailable);
  const decide = (): number | undefined =>
    retries.failed({ method, error, pushback: "7", attempts: 1, attemptsSincePushback: 1 });
  // A retry requires more than two of the four tokens.
  expect([decide(), decide()]).toEqual([7, undefined]);
});
