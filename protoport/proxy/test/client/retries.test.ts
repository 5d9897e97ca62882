import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
// oxfmt-ignore
import { envelope, GreenhouseService, grpcHead, grpcResponse, ReadingSchema, RecordReadingsResponseSchema,
  type ScriptedConnection, startScriptedServer, watered } from "@protoport/testing/proxy";
import type { GrpcTransportOptions, RetryPolicy } from "../../src/client/index.ts";
import { createGrpcTransport, createUpstream } from "../../src/client/index.ts";
import { type FailedAttempt, Retries } from "../../src/client/retries.ts";
// oxfmt-ignore
import { dataFrame, type Field, type Frame, frameFlag, frameType, headersFrame, listenOnLoopback, resetFrame, within
} from "@protoport/testing";

const backoff = { initialBackoffMs: 1, maxBackoffMs: 10, backoffMultiplier: 2 };
const policy: RetryPolicy = { maxAttempts: 4, ...backoff, retryableCodes: [Code.Unavailable] };
type Step = (connection: ScriptedConnection, streamId: number) => void;

function sends(frames: (streamId: number) => readonly Frame[]): Step {
  return (connection, id) => connection.send(...frames(id));
}

const ok = sends((id) => grpcResponse(id, watered));
const refused = sends((id) => [resetFrame(id, 7)]);
const fails = (status: number, ...more: readonly Field[]): Step =>
  sends((id) => [headersFrame(id, [...grpcHead, ["grpc-status", String(status)], ...more], frameFlag.endStream)]);
const unavailable = fails(14);
const slowPolicy = { ...policy, initialBackoffMs: 60_000, maxBackoffMs: 60_000 };
const failWithPushback = (text: string): Step => fails(14, ["grpc-retry-pushback-ms", text]);

interface RetryCase {
  readonly name: string;
  /** How the server handles each attempt. The last step is repeated. */
  readonly steps: readonly Step[];
  readonly retry?: RetryPolicy | "transparent" | "off";
  readonly options?: Partial<GrpcTransportOptions>;
  readonly want: string;
  /** How often the call reaches the server. */
  readonly attempts: number;
}

// oxfmt-ignore
const retryCases: readonly RetryCase[] = [
  { name: "a success", steps: [ok], want: "ok", attempts: 1 },
  { name: "two failures and a success", steps: [unavailable, unavailable, ok], want: "ok", attempts: 3 },
  { name: "one failure with a backoff multiplier of 1000", steps: [unavailable, ok],
    retry: { ...slowPolicy, initialBackoffMs: 60, backoffMultiplier: 1_000 }, want: "ok", attempts: 2 },
  { name: "repeated failures", steps: [unavailable], want: "Unavailable", attempts: 4 },
  { name: "a non-retryable code", steps: [fails(5), ok], want: "NotFound", attempts: 1 },
  { name: "a retryable error without a policy", steps: [unavailable, ok], retry: "transparent", want: "Unavailable",
    attempts: 1 },
  { name: "a pushback of 0", steps: [failWithPushback("0"), ok], retry: slowPolicy, want: "ok", attempts: 2 },
  { name: "repeated pushbacks of 0", steps: [failWithPushback("0")], retry: slowPolicy, want: "Unavailable",
    attempts: 4 },
  { name: "a pushback of 0 and a failure without pushback", steps: [failWithPushback("0"), unavailable, ok],
    retry: { ...slowPolicy, initialBackoffMs: 60, backoffMultiplier: 1_000 }, want: "ok", attempts: 3 },
  { name: "a failure after the response header",
    steps: [sends((id) => grpcResponse(id, watered, [["grpc-status", "14"]])), ok], want: "Unavailable", attempts: 1 },
  { name: "a reset after the response header",
    steps: [(connection, id) => connection.send(headersFrame(id, grpcHead), resetFrame(id, 7)), ok],
    want: "Unavailable", attempts: 1 },
  { name: "a lost connection", steps: [({ socket }) => socket.destroy(), ok], want: "ok", attempts: 2 },
  { name: "an HTML 503 response from a load balancer",
    steps: [sends((id) => [headersFrame(id, [[":status", "503"], ["content-type", "text/html"]]),
        dataFrame(id, Buffer.from("<html>"), frameFlag.endStream)]), ok], want: "ok", attempts: 2 },
  { name: "a failure and a pushback after the response header",
    steps: [sends((id) => grpcResponse(id, watered, [["grpc-status", "14"], ["grpc-retry-pushback-ms", "0"]])), ok],
    want: "Unavailable", attempts: 1 },
  { name: "one refused stream per attempt", steps: [refused, unavailable, refused, ok],
    retry: { ...policy, maxAttempts: 2 }, want: "ok", attempts: 4 },
  { name: "a refused stream without a policy", steps: [refused, ok], retry: "transparent", want: "ok", attempts: 2 },
  { name: "two refused streams without a policy", steps: [refused], retry: "transparent", want: "Unavailable",
    attempts: 2 },
  { name: "a lost connection without a policy", steps: [({ socket }) => socket.destroy(), ok], retry: "transparent",
    want: "Unavailable", attempts: 1 },
  { name: "a refused stream with retries off", steps: [refused, ok], retry: "off", want: "Unavailable", attempts: 1 },
];

function startSteps(steps: readonly Step[]) {
  let attempt = 0;
  return startScriptedServer({
    request: (connection, id) => steps[Math.min(attempt++, steps.length - 1)]?.(connection, id),
  });
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await within(call, "a call");
    return "ok";
  } catch (reason) {
    return Code[ConnectError.from(reason).code] ?? "?";
  }
}

test.each(retryCases)(
  "after $name, a call returns $want (attempts: $attempts)",
  async ({ steps, retry = policy, options, want, attempts }) => {
    await using server = await startSteps(steps);
    await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry, ...options });
    expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
    expect(server.requests).toBe(attempts);
  },
);

/** Returns a policy, and a promise that resolves when an attempt has failed and the call waits for the next attempt. */
function watchPolicy(base: RetryPolicy): { readonly retry: RetryPolicy; readonly failed: Promise<void> } {
  const { promise: failed, resolve } = Promise.withResolvers<void>();
  return { retry: { ...base, methods: () => (resolve(), true) }, failed };
}

test("a call that waits for its next attempt fails at its deadline", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { retry, failed } = watchPolicy(slowPolicy);
  await using server = await startSteps([unavailable, ok]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry, defaultTimeoutMs: 50 });
  const call = createClient(GreenhouseService, transport).waterBed({});
  await failed;
  vi.advanceTimersByTime(50);
  await expect(call).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  expect(server.requests).toBe(1);
});

test("successful calls refill the retry budget", async () => {
  await using server = await startSteps([unavailable, ok, unavailable, ok]);
  const budget = { maxTokens: 4, tokenRatio: 1 };
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry: { ...policy, budget } });
  const { waterBed } = createClient(GreenhouseService, transport);
  expect([await outcomeOf(waterBed({})), await outcomeOf(waterBed({}))]).toEqual(["ok", "ok"]);
});

test.each([
  { code: 8, lateMs: 0, want: "Canceled" },
  { code: 8, lateMs: 60_000, want: "DeadlineExceeded" },
  { code: 2, lateMs: 60_000, want: "Internal" },
])("a reset with code $code after $lateMs ms becomes $want for callers", async ({ code, lateMs, want }) => {
  const realNow = performance.now.bind(performance);
  let aheadMs = 0;
  using _ = vi.spyOn(performance, "now").mockImplementation(() => realNow() + aheadMs);
  await using server = await startScriptedServer({
    request: (connection, id) => {
      aheadMs = lateMs;
      connection.send(resetFrame(id, code));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, defaultTimeoutMs: 60_000 });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
});

test("a cancelled call is not retried when another call is refused", async () => {
  await using upstream = createUpstream({ addresses: "unix:/none/late.sock" });
  const controller = new AbortController();
  const input = {
    next: () => new Promise<never>(() => {}),
    return: async () => {
      controller.abort();
      return { done: true, value: undefined } as const;
    },
  };
  const clientOf = (retry: RetryPolicy | "off") =>
    createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream, retry }));
  const failing = clientOf("off").recordReadings({ [Symbol.asyncIterator]: () => input });
  const cancelled = clientOf(slowPolicy).waterBed({}, { signal: controller.signal });
  // Without a retry, no timer for another attempt remains.
  expect(await Promise.all([failing, cancelled].map(outcomeOf))).toEqual(["Unavailable", "Canceled"]);
});

test("a closed transport does not send calls that wait for a retry", async () => {
  const { retry, failed } = watchPolicy(policy);
  await using server = await startSteps([unavailable]);
  const transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  const call = outcomeOf(createClient(GreenhouseService, transport).waterBed({}));
  await failed;
  await transport[Symbol.asyncDispose]();
  expect([await call, server.requests]).toEqual(["Unavailable", 1]);
});

test("an unsent call fails immediately when its transport is closed", async () => {
  const transport = createGrpcTransport({ baseUrl: "unix:/none/late.sock", waitForReady: true, retry: slowPolicy });
  const call = createClient(GreenhouseService, transport).waterBed({});
  await transport[Symbol.asyncDispose]();
  await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a retried client stream half-closes on each attempt", async () => {
  await using server = await startSteps([unavailable, sends((id) => grpcResponse(id, envelope(new Uint8Array())))]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry: policy });
  expect(await outcomeOf(createClient(GreenhouseService, transport).recordReadings(twoReadings()))).toBe("ok");
});

test("a call that is cancelled before its retry is not sent again", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { retry, failed } = watchPolicy(slowPolicy);
  await using server = await startSteps([unavailable]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  const controller = new AbortController();
  const call = createClient(GreenhouseService, transport).waterBed({}, { signal: controller.signal });
  await failed;
  await expect.poll(() => vi.getTimerCount()).toBeGreaterThan(0);
  controller.abort();
  await expect(call).rejects.toMatchObject({ code: Code.Canceled });
  expect([vi.getTimerCount(), server.requests]).toEqual([0, 1]);
});

async function* twoReadings(): AsyncGenerator<{ sensor: string }> {
  yield { sensor: "a" };
  yield { sensor: "b" };
}

test("every attempt sends its number, all messages and the remaining timeout", async () => {
  const attempts: { before: unknown; timeoutMs: number; body: Buffer }[] = [];
  const server = createHttp2Server();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const pieces: Buffer[] = [];
    stream
      .on("data", (piece: Buffer) => pieces.push(piece))
      .on("end", () => {
        const timeoutMs = Number.parseInt(String(headers["grpc-timeout"]));
        attempts.push({ before: headers["grpc-previous-rpc-attempts"], timeoutMs, body: Buffer.concat(pieces) });
        const head = { ":status": 200, "content-type": "application/grpc" };
        const failure = { "grpc-status": "14", "grpc-retry-pushback-ms": "30" };
        if (attempts.length < 3) return stream.respond({ ...head, ...failure }, { endStream: true });
        stream.respond(head, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        const counted = { count: 2, meanDegreesCelsius: 0 };
        const response = { $typeName: "greenhouse.v1.RecordReadingsResponse", ...counted } as const;
        stream.end(envelope(toBinary(RecordReadingsResponseSchema, response)));
      });
  });
  const baseUrl = await listenOnLoopback(server);
  await using transport = createGrpcTransport({ baseUrl, retry: policy });
  const call = createClient(GreenhouseService, transport).recordReadings(twoReadings(), { timeoutMs: 60_000 });
  expect((await within(call, "the call")).count).toBe(2);
  expect(attempts.map(({ before }) => before)).toEqual([undefined, "1", "2"]);
  const [first = 0, second = 0, third = 0] = attempts.map(({ timeoutMs }) => timeoutMs);
  expect(first > second && second > third).toBe(true);
  const sent = ["a", "b"].map((sensor) => ({ $typeName: "greenhouse.v1.Reading", sensor, degreesCelsius: 0 }) as const);
  const body = Buffer.concat(sent.map((reading) => envelope(toBinary(ReadingSchema, reading))));
  for (const attempt of attempts) expect(attempt.body.equals(body)).toBe(true);
  server.close();
});

test("a trailers-only success returns a stream without messages", async () => {
  await using server = await startSteps([unavailable, fails(0)]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry: policy });
  const sensors: string[] = [];
  for await (const { sensor } of createClient(GreenhouseService, transport).watchReadings({})) sensors.push(sensor);
  expect([sensors, server.frames.filter(({ type }) => type === frameType.headers).length]).toEqual([[], 2]);
});

const method = GreenhouseService.method.waterBed;
const error = new ConnectError("", Code.Unavailable);
const failure: FailedAttempt = { method, error, pushback: null, attempts: 1, attemptsSincePushback: 1 };

test("the retry backoff grows exponentially to its maximum, with ±20 % jitter", () => {
  const budget = { maxTokens: 1_000, tokenRatio: 1 };
  const retries = new Retries({ ...policy, maxAttempts: 5, initialBackoffMs: 100, maxBackoffMs: 350, budget });
  for (const [attempt, wantMs] of [
    [1, 100],
    [2, 200],
    [3, 350],
    [4, 350],
  ] as const) {
    const failed = { ...failure, attempts: attempt, attemptsSincePushback: attempt };
    const waits = Array.from({ length: 100 }, () => retries.failed(failed) ?? 0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(wantMs * 0.8);
    expect(Math.min(...waits)).toBeLessThan(wantMs * 0.95);
    expect(Math.max(...waits)).toBeLessThanOrEqual(wantMs * 1.2);
    expect(Math.max(...waits)).toBeGreaterThan(wantMs * 1.05);
    for (let i = 0; i < 100; i++) retries.succeeded();
  }
});

describe("the retry decision for a failed call", () => {
  const yesAndNo = [true, false];
  const combinations = [
    { pushback: null, allowsRetry: true, waitMs: undefined },
    { pushback: "7", allowsRetry: true, waitMs: 7 },
    { pushback: "-1", allowsRetry: false, waitMs: undefined },
    ...["soon", "1e0", "8640000000"].map((pushback) => ({ pushback, allowsRetry: false, waitMs: undefined })),
  ].flatMap((pushed) =>
    yesAndNo.flatMap((isRetryable) =>
      yesAndNo.flatMap((isAllowed) =>
        yesAndNo.flatMap((hasAttempts) =>
          yesAndNo.map((hasBudget) => ({ ...pushed, isRetryable, isAllowed, hasAttempts, hasBudget })),
        ),
      ),
    ),
  );
  const budget = { maxTokens: 4, tokenRatio: 0.001 };

  test.each(combinations)(
    "pushback $pushback, retryable $isRetryable, allowed $isAllowed, attempts left $hasAttempts, budget left $hasBudget",
    ({ pushback, allowsRetry, waitMs, isRetryable, isAllowed, hasAttempts, hasBudget }) => {
      const retries = new Retries({ ...policy, budget, methods: ({ name }) => name === "WaterBed" });
      if (!hasBudget) for (const _ of [1, 2]) retries.failed(failure);
      const delayMs = retries.failed({
        ...failure,
        method: isAllowed ? method : GreenhouseService.method.getReading,
        error: new ConnectError("", isRetryable ? Code.Unavailable : Code.NotFound),
        pushback,
        attempts: hasAttempts ? policy.maxAttempts - 1 : policy.maxAttempts,
      });
      const isRetried = allowsRetry && isRetryable && isAllowed && hasAttempts && hasBudget;
      expect(delayMs !== undefined).toBe(isRetried);
      if (isRetried && waitMs !== undefined) expect(delayMs).toBe(waitMs);
    },
  );

  test.each(combinations.filter(({ hasBudget, hasAttempts }) => hasBudget && hasAttempts))(
    "uses budget tokens as gRFC A6 requires (retryable $isRetryable, allowed $isAllowed, pushback $pushback)",
    ({ pushback, allowsRetry, isRetryable, isAllowed }) => {
      const retries = new Retries({ ...policy, budget, methods: ({ name }) => name === "WaterBed" });
      retries.failed({
        ...failure,
        method: isAllowed ? method : GreenhouseService.method.getReading,
        error: new ConnectError("", isRetryable ? Code.Unavailable : Code.NotFound),
        pushback,
      });
      // gRFC A6: retryable failures remove tokens, as do failures whose pushback forbids a retry.
      const isCounted = (isRetryable && isAllowed) || !allowsRetry;
      expect(retries.failed(failure) === undefined).toBe(isCounted);
    },
  );

  test("a policy whose `methods` returns a promise allows no retry", () => {
    const promised: object = { ...policy, methods: () => Promise.resolve(false) };
    expect(new Retries(Object.assign({ ...policy }, promised)).failed(failure)).toBeUndefined();
  });
});

test("no call is retried while less than half the retry budget remains", () => {
  const retries = new Retries({ ...policy, budget: { maxTokens: 4, tokenRatio: 0.5 } });
  const isRetried = (): boolean => retries.failed(failure) !== undefined;
  for (let i = 0; i < 10; i++) retries.succeeded();
  // A code that is not retryable removes no tokens.
  const other = { ...failure, error: new ConnectError("", Code.NotFound) };
  for (let i = 0; i < 10; i++) expect(retries.failed(other)).toBeUndefined();
  expect([isRetried(), isRetried(), isRetried(), isRetried(), isRetried()]).toEqual([true, false, false, false, false]);
  // No tokens remain. A retry requires 3.5.
  for (let i = 0; i < 6; i++) retries.succeeded();
  expect(isRetried()).toBe(false);
  for (let i = 0; i < 3; i++) retries.succeeded();
  expect(isRetried()).toBe(true);
});

test("the default retry budget has 100 tokens, and a success adds 0.1", () => {
  const retries = new Retries(policy);
  const isRetried = (): boolean => retries.failed(failure) !== undefined;
  expect(Array.from({ length: 100 }, isRetried).lastIndexOf(true)).toBe(48);
  for (let i = 0; i < 500; i++) retries.succeeded();
  expect(isRetried()).toBe(false);
  for (let i = 0; i < 30; i++) retries.succeeded();
  expect(isRetried()).toBe(true);
});

const maxTimerMs = 2 ** 31 - 1;
const least = { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: Number.MIN_VALUE };
const most = { maxAttempts: 5, initialBackoffMs: maxTimerMs / 2, maxBackoffMs: maxTimerMs / 2, backoffMultiplier: 1e9 };

test.each([
  { ...least, retryableCodes: [1], budget: { maxTokens: 1, tokenRatio: 0 } },
  { ...most, retryableCodes: Array<Code>(16).fill(16), budget: { maxTokens: 1_000, tokenRatio: 1_000 } },
])("a retry policy with the extreme values %j is accepted", (retry) => expect(new Retries(retry)).toBeDefined());

test.each([
  { maxAttempts: 1 },
  { maxAttempts: 6 },
  { initialBackoffMs: 0 },
  { initialBackoffMs: maxTimerMs / 2 + 1 },
  { maxBackoffMs: Number.NaN },
  { maxBackoffMs: maxTimerMs / 2 + 1 },
  { backoffMultiplier: 0 },
  { backoffMultiplier: -0.5 },
  { retryableCodes: [] },
  { retryableCodes: Array<Code>(17).fill(16) },
  { retryableCodes: [0] },
  { retryableCodes: [17] },
  { budget: { maxTokens: 0, tokenRatio: 1 } },
  { budget: { maxTokens: 1_001, tokenRatio: 1 } },
  { budget: { maxTokens: 10, tokenRatio: -1 } },
  { budget: { maxTokens: 10, tokenRatio: 1_001 } },
])("a retry policy with the invalid member $0 is rejected", (invalid) => {
  const retry = { ...policy, ...invalid };
  expect(() => createGrpcTransport({ baseUrl: "http://x", retry })).toThrow(RangeError);
});
