import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  GreenhouseService,
  ReadingSchema,
  RecordReadingsResponseSchema,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import {
  createGrpcTransport,
  createUpstream,
  type GrpcTransportOptions,
  type RetryPolicy,
} from "../../src/client/index.ts";
import { type FailedCall, Retries } from "../../src/client/retries.ts";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import {
  dataFrame,
  type Frame,
  frameFlag,
  frameType,
  headersFrame,
  resetFrame,
} from "../../../testing/src/carriers/http2-frames.ts";
import { listenOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { within } from "../../../testing/src/deadline.ts";
import { watered } from "../../../testing/src/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcAnswer,
  grpcHead,
  type ScriptedConnection,
  startScriptedServer,
} from "../../../testing/src/gateway/scripted-http2-server.ts";

// When a call that has failed is sent again, as the server counts it.

const policy: RetryPolicy = {
  maxAttempts: 4,
  initialBackoffMs: 1,
  maxBackoffMs: 10,
  backoffMultiplier: 2,
  retryableCodes: [Code.Unavailable],
};

/** What a server does with one attempt. */
type Step = (connection: ScriptedConnection, streamId: number) => void;

function sends(frames: (streamId: number) => readonly Frame[]): Step {
  return (connection, id) => connection.send(...frames(id));
}

const ok = sends((id) => grpcAnswer(id, watered));
const refused = sends((id) => [resetFrame(id, 7)]);

/** An answer that is its trailer alone. */
function fails(status: number, ...more: readonly Field[]): Step {
  return sends((id) => [
    headersFrame(id, [...grpcHead, ["grpc-status", String(status)], ...more], frameFlag.endStream),
  ]);
}

const unavailable = fails(14);
const unhurried = { ...policy, initialBackoffMs: 60_000, maxBackoffMs: 60_000 };

function pushback(text: string): Step {
  return fails(14, ["grpc-retry-pushback-ms", text]);
}

interface Row {
  readonly name: string;
  /** What the server does with each attempt; the last one for all others. */
  readonly steps: readonly Step[];
  readonly retry?: RetryPolicy | "transparent" | "off";
  readonly options?: Partial<GrpcTransportOptions>;
  readonly want: string;
  /** How often the call arrives. */
  readonly attempts: number;
}

const rows: readonly Row[] = [
  { name: "an attempt that succeeds", steps: [ok], want: "ok", attempts: 1 },
  { name: "a server that comes back", steps: [unavailable, unavailable, ok], want: "ok", attempts: 3 },
  {
    name: "a wait that would be a thousand times as long after a second failure",
    steps: [unavailable, ok],
    retry: { ...unhurried, initialBackoffMs: 60, backoffMultiplier: 1_000 },
    want: "ok",
    attempts: 2,
  },
  { name: "a server that stays away", steps: [unavailable], want: "Unavailable", attempts: 4 },
  { name: "a code that the policy does not name", steps: [fails(5), ok], want: "NotFound", attempts: 1 },
  { name: "no policy", steps: [unavailable, ok], retry: "transparent", want: "Unavailable", attempts: 1 },
  { name: "a server that wants it at once", steps: [pushback("0"), ok], retry: unhurried, want: "ok", attempts: 2 },
  {
    name: "a server that wants it at once, each time",
    steps: [pushback("0")],
    retry: unhurried,
    want: "Unavailable",
    attempts: 4,
  },
  {
    name: "a wait that would be a thousand times as long but for the server's own",
    steps: [pushback("0"), unavailable, ok],
    retry: { ...unhurried, initialBackoffMs: 60, backoffMultiplier: 1_000 },
    want: "ok",
    attempts: 3,
  },
  {
    name: "a budget that two failures use up",
    steps: [unavailable, unavailable, ok],
    retry: { ...policy, budget: { maxTokens: 4, tokenRatio: 1 } },
    want: "Unavailable",
    attempts: 2,
  },
  { name: "a server that does not want it", steps: [pushback("-1"), ok], want: "Unavailable", attempts: 1 },
  {
    name: "a pushback that is no number of milliseconds",
    steps: [pushback("1e0"), ok],
    want: "Unavailable",
    attempts: 1,
  },
  { name: "a pushback of 100 days", steps: [pushback("8640000000"), ok], want: "Unavailable", attempts: 1 },
  {
    name: "an answer that has begun",
    steps: [sends((id) => grpcAnswer(id, watered, [["grpc-status", "14"]])), ok],
    want: "Unavailable",
    attempts: 1,
  },
  {
    name: "an answer that is cut short",
    steps: [(connection, id) => connection.send(headersFrame(id, grpcHead), resetFrame(id, 7)), ok],
    want: "Unavailable",
    attempts: 1,
  },
  { name: "a connection that is lost", steps: [({ socket }) => socket.destroy(), ok], want: "ok", attempts: 2 },
  {
    name: "a balancer without servers",
    steps: [
      sends((id) => [
        headersFrame(id, [
          [":status", "503"],
          ["content-type", "text/html"],
        ]),
        dataFrame(id, Buffer.from("<html>"), frameFlag.endStream),
      ]),
      ok,
    ],
    want: "ok",
    attempts: 2,
  },
  {
    name: "a method that must not be processed twice",
    steps: [unavailable, ok],
    retry: { ...policy, methods: ({ name }) => name !== "WaterBed" },
    want: "Unavailable",
    attempts: 1,
  },
  {
    name: "a method that must not be processed twice, whenever the server wants it",
    steps: [pushback("0"), ok],
    retry: { ...policy, methods: ({ name }) => name !== "WaterBed" },
    want: "Unavailable",
    attempts: 1,
  },
  {
    name: "an answer that has begun, whenever the server wants it",
    steps: [
      sends((id) =>
        grpcAnswer(id, watered, [
          ["grpc-status", "14"],
          ["grpc-retry-pushback-ms", "0"],
        ]),
      ),
      ok,
    ],
    want: "Unavailable",
    attempts: 1,
  },
  {
    name: "a code that the policy does not name, whenever the server wants it",
    steps: [fails(5, ["grpc-retry-pushback-ms", "0"]), ok],
    want: "NotFound",
    attempts: 1,
  },
  {
    name: "attempts that are refused, once each",
    steps: [refused, unavailable, refused, ok],
    retry: { ...policy, maxAttempts: 2 },
    want: "ok",
    attempts: 4,
  },
  {
    name: "a stream that is refused, without a policy",
    steps: [refused, ok],
    retry: "transparent",
    want: "ok",
    attempts: 2,
  },
  {
    name: "a stream that is refused, and nothing allowed",
    steps: [refused, ok],
    retry: "off",
    want: "Unavailable",
    attempts: 1,
  },
];

/** A server that takes these steps, one for each attempt. */
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
  } catch (error) {
    return Code[ConnectError.from(error).code] ?? "?";
  }
}

test.each(rows)("$name: $attempts attempts, $want", async ({ steps, retry = policy, options, want, attempts }) => {
  await using server = await startSteps(steps);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry, ...options });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
  expect(server.requests).toBe(attempts);
});

/** A policy, and a promise that resolves when a call has failed by it: as soon as that call waits for its next attempt. */
function watched(followed: RetryPolicy): { readonly retry: RetryPolicy; readonly failed: Promise<void> } {
  const { promise: failed, resolve } = Promise.withResolvers<void>();
  const methods = (): boolean => {
    resolve();
    return true;
  };
  return { retry: { ...followed, methods }, failed };
}

test("a deadline that passes while a call waits for its next attempt ends it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { retry, failed } = watched(unhurried);
  await using server = await startSteps([unavailable, ok]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry, defaultTimeoutMs: 50 });
  const call = createClient(GreenhouseService, transport).waterBed({});
  await failed;
  vi.advanceTimersByTime(50);
  await expect(call).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  expect(server.requests).toBe(1);
});

test("each call that succeeds gives back what attempts have taken from the budget", async () => {
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
])("a reset with code $code is $want when $lateMs ms of 60,000 are over", async ({ code, lateMs, want }) => {
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

test("a caller that gives up while a call waits for its next attempt is told at once", async () => {
  const controller = new AbortController();
  const { retry, failed } = watched(unhurried);
  await using server = await startSteps([unavailable]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  const call = outcomeOf(createClient(GreenhouseService, transport).waterBed({}, { signal: controller.signal }));
  await failed;
  controller.abort();
  expect(await call).toBe("Canceled");
});

test("a call that is given up while another is refused is not sent again", async () => {
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
  const givenUp = clientOf(unhurried).waterBed({}, { signal: controller.signal });
  // The timer of another attempt would be left behind.
  expect(await Promise.all([failing, givenUp].map(outcomeOf))).toEqual(["Unavailable", "Canceled"]);
});

test("a call that waits for its next attempt makes none once its transport is closed", async () => {
  const { retry, failed } = watched(policy);
  await using server = await startSteps([unavailable]);
  const transport = createGrpcTransport({ baseUrl: server.baseUrl, retry });
  const call = outcomeOf(createClient(GreenhouseService, transport).waterBed({}));
  await failed;
  await transport[Symbol.asyncDispose]();
  expect(await call).toBe("Unavailable");
  expect(server.requests).toBe(1);
});

test("a call that has not been sent when its transport is closed fails at once, whatever the policy", async () => {
  const transport = createGrpcTransport({ baseUrl: "unix:/none/late.sock", waitForReady: true, retry: unhurried });
  const call = createClient(GreenhouseService, transport).waterBed({});
  await transport[Symbol.asyncDispose]();
  await expect(within(call, "the end of the call")).rejects.toMatchObject({ code: Code.Unavailable });
});

async function* twoReadings(): AsyncGenerator<{ sensor: string }> {
  yield { sensor: "a" };
  yield { sensor: "b" };
}

test("every attempt says how many there were, has all messages, and less time", async () => {
  const seen: { before: unknown; timeoutMs: number; body: Buffer }[] = [];
  const server = createHttp2Server();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const pieces: Buffer[] = [];
    stream
      .on("data", (piece: Buffer) => pieces.push(piece))
      .on("end", () => {
        const timeoutMs = Number.parseInt(String(headers["grpc-timeout"]));
        seen.push({ before: headers["grpc-previous-rpc-attempts"], timeoutMs, body: Buffer.concat(pieces) });
        const head = { ":status": 200, "content-type": "application/grpc" };
        const failure = { "grpc-status": "14", "grpc-retry-pushback-ms": "30" };
        if (seen.length < 3) return stream.respond({ ...head, ...failure }, { endStream: true });
        stream.respond(head, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        const answer = { $typeName: "greenhouse.v1.RecordReadingsResponse", count: 2, meanDegreesCelsius: 0 } as const;
        stream.end(envelope(toBinary(RecordReadingsResponseSchema, answer)));
      });
  });
  const baseUrl = await listenOnLoopback(server);
  await using transport = createGrpcTransport({ baseUrl, retry: policy });
  const call = createClient(GreenhouseService, transport).recordReadings(twoReadings(), { timeoutMs: 60_000 });
  expect((await within(call, "the call")).count).toBe(2);
  expect(seen.map(({ before }) => before)).toEqual([undefined, "1", "2"]);
  const [first = 0, second = 0, third = 0] = seen.map(({ timeoutMs }) => timeoutMs);
  expect(first > second && second > third).toBe(true);
  const body = Buffer.concat(
    ["a", "b"].map((sensor) =>
      envelope(toBinary(ReadingSchema, { $typeName: "greenhouse.v1.Reading", sensor, degreesCelsius: 0 })),
    ),
  );
  for (const attempt of seen) expect(attempt.body.equals(body)).toBe(true);
  server.close();
});

test("a stream that is answered by its header alone ends without messages", async () => {
  await using server = await startSteps([unavailable, fails(0)]);
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, retry: policy });
  const sensors: string[] = [];
  for await (const { sensor } of createClient(GreenhouseService, transport).watchReadings({})) sensors.push(sensor);
  expect(sensors).toEqual([]);
  expect(server.frames.filter(({ type }) => type === frameType.headers)).toHaveLength(2);
});

const method = GreenhouseService.method.waterBed;
const failure: FailedCall = {
  method,
  error: new ConnectError("", Code.Unavailable),
  pushback: null,
  attempts: 1,
  attemptsSincePushback: 1,
};

test("waits get longer up to a limit, by chance a fifth more or less", () => {
  const retries = new Retries({
    ...policy,
    maxAttempts: 5,
    initialBackoffMs: 100,
    maxBackoffMs: 350,
    budget: { maxTokens: 1_000, tokenRatio: 1 },
  });
  for (const [attempt, wantMs] of [
    [1, 100],
    [2, 200],
    [3, 350],
    [4, 350],
  ] as const) {
    const waits = Array.from(
      { length: 100 },
      () => retries.failed({ ...failure, attempts: attempt, attemptsSincePushback: attempt }) ?? 0,
    );
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(wantMs * 0.8);
    expect(Math.min(...waits)).toBeLessThan(wantMs * 0.95);
    expect(Math.max(...waits)).toBeLessThanOrEqual(wantMs * 1.2);
    expect(Math.max(...waits)).toBeGreaterThan(wantMs * 1.05);
    for (let i = 0; i < 100; i++) retries.succeeded();
  }
});

describe("a call is sent again only if all conditions hold", () => {
  const yesAndNo = [true, false];
  const pushbacks = [
    { asked: null, isWanted: true, waitMs: undefined },
    { asked: "7", isWanted: true, waitMs: 7 },
    { asked: "-1", isWanted: false, waitMs: undefined },
    { asked: "soon", isWanted: false, waitMs: undefined },
  ];
  const combinations = pushbacks.flatMap((pushed) =>
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
    "pushback $asked, code named: $isRetryable, method allowed: $isAllowed, attempts left: $hasAttempts, budget left: $hasBudget",
    ({ asked, isWanted, waitMs, isRetryable, isAllowed, hasAttempts, hasBudget }) => {
      const retries = new Retries({ ...policy, budget, methods: ({ name }) => name === "WaterBed" });
      if (!hasBudget) for (const _ of [1, 2]) retries.failed(failure);
      const delayMs = retries.failed({
        ...failure,
        method: isAllowed ? method : GreenhouseService.method.getReading,
        error: new ConnectError("", isRetryable ? Code.Unavailable : Code.NotFound),
        pushback: asked,
        attempts: hasAttempts ? policy.maxAttempts - 1 : policy.maxAttempts,
      });
      const isSent = isWanted && isRetryable && isAllowed && hasAttempts && hasBudget;
      expect(delayMs !== undefined).toBe(isSent);
      if (isSent && waitMs !== undefined) expect(delayMs).toBe(waitMs);
    },
  );

  test.each(combinations.filter(({ hasBudget, hasAttempts }) => hasBudget && hasAttempts))(
    "pushback $asked, code named: $isRetryable, method allowed: $isAllowed: what it takes of the budget",
    ({ asked, isWanted, isRetryable, isAllowed }) => {
      const retries = new Retries({ ...policy, budget, methods: ({ name }) => name === "WaterBed" });
      retries.failed({
        ...failure,
        method: isAllowed ? method : GreenhouseService.method.getReading,
        error: new ConnectError("", isRetryable ? Code.Unavailable : Code.NotFound),
        pushback: asked,
      });
      // gRFC A6: a failure that is worth another attempt counts, and one after which the server wants none.
      const isCounted = (isRetryable && isAllowed) || !isWanted;
      expect(retries.failed(failure) === undefined).toBe(isCounted);
    },
  );

  test("a method is not allowed by a promise", () => {
    const promised: object = { ...policy, methods: () => Promise.resolve(false) };
    const retries = new Retries(Object.assign({ ...policy }, promised));
    expect(retries.failed(failure)).toBeUndefined();
  });
});

test("nothing is sent again once half of the budget is gone, until successes have filled it", () => {
  const retries = new Retries({ ...policy, budget: { maxTokens: 4, tokenRatio: 0.5 } });
  const isRetried = (): boolean => retries.failed(failure) !== undefined;
  for (let i = 0; i < 10; i++) retries.succeeded();
  // A code that the policy does not name takes nothing.
  const other = { ...failure, error: new ConnectError("", Code.NotFound) };
  for (let i = 0; i < 10; i++) expect(retries.failed(other)).toBeUndefined();
  expect([isRetried(), isRetried(), isRetried(), isRetried(), isRetried()]).toEqual([true, false, false, false, false]);
  // None are left: it takes 3.5 for one more.
  for (let i = 0; i < 6; i++) retries.succeeded();
  expect(isRetried()).toBe(false);
  for (let i = 0; i < 3; i++) retries.succeeded();
  expect(isRetried()).toBe(true);
});

test("by default the budget is 100 failures, and a tenth for each success", () => {
  const retries = new Retries(policy);
  const isRetried = (): boolean => retries.failed(failure) !== undefined;
  expect(Array.from({ length: 100 }, isRetried).lastIndexOf(true)).toBe(48);
  for (let i = 0; i < 500; i++) retries.succeeded();
  expect(isRetried()).toBe(false);
  for (let i = 0; i < 30; i++) retries.succeeded();
  expect(isRetried()).toBe(true);
});

const timerMsMax = 2 ** 31 - 1;
const least = { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
const most = { maxAttempts: 5, initialBackoffMs: timerMsMax / 2, maxBackoffMs: timerMsMax / 2, backoffMultiplier: 1e9 };

test.each([
  { ...least, retryableCodes: [1], budget: { maxTokens: 1, tokenRatio: 0 } },
  { ...most, retryableCodes: Array<Code>(16).fill(16), budget: { maxTokens: 1_000, tokenRatio: 1_000 } },
])("a policy at its limits is taken: %j", (retry) => {
  expect(new Retries(retry)).toBeDefined();
});

test.each([
  { maxAttempts: 1 },
  { maxAttempts: 6 },
  { initialBackoffMs: 0 },
  { initialBackoffMs: timerMsMax / 2 + 1 },
  { maxBackoffMs: Number.NaN },
  { maxBackoffMs: timerMsMax / 2 + 1 },
  { backoffMultiplier: 0.5 },
  { retryableCodes: [] },
  { retryableCodes: Array<Code>(17).fill(16) },
  { retryableCodes: [0] },
  { retryableCodes: [17] },
  { budget: { maxTokens: 0, tokenRatio: 1 } },
  { budget: { maxTokens: 1_001, tokenRatio: 1 } },
  { budget: { maxTokens: 10, tokenRatio: -1 } },
  { budget: { maxTokens: 10, tokenRatio: 1_001 } },
])("a policy with $0 is refused", (wrong) => {
  const retry = { ...policy, ...wrong };
  expect(() => createGrpcTransport({ baseUrl: "http://x", retry })).toThrow(RangeError);
});
