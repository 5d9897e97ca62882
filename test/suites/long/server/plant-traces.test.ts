import { setImmediate as nextTurn } from "node:timers/promises";
import { writeFileSync } from "node:fs";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { describe, expect, test, vi } from "vitest";
import type { StartedServer } from "../../../../src/server/index.ts";
import { bearer, startConfigured } from "../../../support/server/index.ts";
// oxfmt-ignore
import { createCertificate, createTempFolder, exchange, type Field, type HttpRequest, listenOnLoopback,
  wireFormats, within } from "@protoport/testing";
import { deletePlantRequest } from "../../../support/plants/delete-plant.ts";
import { countRefTimers } from "../../../../protoport/testing/src/ref-timers.ts";
import { type OtlpReceiver, startOtlpReceiver } from "../../../../protoport/testing/src/telemetry/otlp-receiver.ts";

const token = "token-of-the-traces-test";
const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const header = [bearer(token), ["traceparent", `00-${traceId}-${parentId}-01`]] as const;
type Span = OtlpReceiver["spans"][number] | undefined;

interface Traced extends AsyncDisposable {
  readonly server: StartedServer;
  readonly lines: (msg: string) => Record<string, unknown>[];
}

/** Starts a server with an SQLite store, which has commits, and plants 1 to 999. The server exports to a collector. */
async function startWithCommits(collector: string, variables: Readonly<Record<string, string>> = {}): Promise<Traced> {
  const folder = createTempFolder();
  const traced = await start(collector, variables, `sqlite:${folder.file("plants.db")}`);
  const end = async (): Promise<void> => {
    await traced[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  };
  return { ...traced, [Symbol.asyncDispose]: end };
}

/** Starts a server with plants 1 to 999. The server exports to a collector. */
async function start(
  collector: string,
  variables: Readonly<Record<string, string>> = {},
  database: string = "memory:",
): Promise<Traced> {
  // The SDK reads its process's variables.
  const all = { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_BSP_SCHEDULE_DELAY: "10", ...variables };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  const environment = { DATABASE_URL: database, PLANTSTORE_TOKENS: token };
  const server = await startConfigured(environment, { serviceVersion: "1.2.3" }).finally(() => vi.unstubAllEnvs());
  const lines = (msg: string) => server.lines().filter((line) => line["msg"] === msg);
  return { server, lines, [Symbol.asyncDispose]: () => server.drain() };
}

const deletePlant = ({ server }: Traced, id: bigint) =>
  exchange(server, "2", deletePlantRequest(wireFormats.grpc, id, header));

const spanNamed = (collector: OtlpReceiver, name: string): Span => collector.spans.find((span) => span.name === name);

test("a server exports call and commit spans in the caller's trace", async () => {
  await using collector = await startOtlpReceiver();
  await using traced = await startWithCommits(collector.url, {
    OTEL_SERVICE_NAME: "greenhouse",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=te%20st",
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20b",
  });
  await deletePlant(traced, 1n);
  await expect.poll(() => collector.spans.length).toBe(2);
  const call = spanNamed(collector, "plantstore.v1.PlantService/DeletePlant");
  expect(call).toMatchObject({
    traceId,
    parentSpanId: parentId,
    kind: 2,
    statusCode: 0,
    links: [],
    attributes: {
      "rpc.system.name": "grpc",
      "rpc.method": "plantstore.v1.PlantService/DeletePlant",
      "rpc.response.status_code": "OK",
    },
  });
  const commit = spanNamed(collector, "DELETE plants");
  expect(commit).toMatchObject({
    traceId,
    parentSpanId: call?.spanId,
    kind: 3,
    links: [`${traceId}-${call?.spanId}`],
    attributes: { "db.system.name": "sqlite", "db.operation.name": "DELETE", "db.collection.name": "plants" },
  });
  expect(commit?.startNs).toBeGreaterThanOrEqual(call?.startNs ?? 0n);
  expect(commit?.endNs).toBeLessThanOrEqual(call?.endNs ?? 0n);
  expect(Math.abs(Number((call?.endNs ?? 0n) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  expect(traced.lines("call")).toMatchObject([{ traceId, spanId: call?.spanId }]);
  expect(collector.requests[0]?.headers).toMatchObject({ "x-key": "a b", "content-type": "application/x-protobuf" });
  expect(collector.resources[0]).toMatchObject({
    "service.name": "greenhouse",
    "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    "service.version": "1.2.3",
    "deployment.environment.name": "te st",
    "telemetry.sdk.language": "nodejs",
  });
  // process.command_line is not exported, because it may contain a password.
  const want = ["process.pid"];
  expect(Object.keys(collector.resources[0] ?? {}).filter((name) => name.startsWith("process."))).toEqual(want);
  // Metrics are collected as well.
  const timed = traced.server
    .collectMetrics()
    .filter(({ points }) => points.some((point) => "sum" in point && point.sum > 0))
    .map(({ name }) => name);
  expect(timed).toEqual(expect.arrayContaining(["db.client.operation.duration", "rpc.server.call.duration"]));
});

test.each<{ name: string; request: HttpRequest; want: object }>(
  // oxfmt-ignore
  [
    { name: "a REST request without a credential", request: { httpMethod: "DELETE", path: "/plants/1", header: [] },
      want: { name: "DELETE /plants/{id}", attributes: { "http.response.status_code": 400 }, statusCode: 0 } },
    { name: "a gRPC call without a credential", request: deletePlantRequest(wireFormats.grpc, 1n, []),
      want: { attributes: { "rpc.response.status_code": "UNAUTHENTICATED" }, statusCode: 0 } },
  ],
)("for $name, a server exports a span", async ({ request, want }) => {
  await using collector = await startOtlpReceiver();
  await using traced = await start(collector.url);
  await exchange(traced.server, "2", request);
  await expect.poll(() => collector.spans.length).toBe(1);
  expect(collector.spans[0]).toMatchObject(want);
  expect(collector.spans[0]?.spanId).toBe(traced.lines("call")[0]?.["spanId"]);
});

test("a batch span links to every call in it", async () => {
  await using collector = await startOtlpReceiver();
  await using traced = await startWithCommits(collector.url);
  await Promise.all(Array.from({ length: 60 }, (_, at) => BigInt(at + 1)).map((id) => deletePlant(traced, id)));
  const commits = (): OtlpReceiver["spans"] => collector.spans.filter(({ name }) => name === "DELETE plants");
  await expect.poll(() => commits().flatMap(({ links }) => links).length).toBe(60);
  await expect.poll(() => collector.spans.length - commits().length).toBe(60);
  const calls = collector.spans.filter(({ kind }) => kind === 2).map(({ spanId }) => `${traceId}-${spanId}`);
  expect(new Set(commits().flatMap(({ links }) => links))).toEqual(new Set(calls));
  for (const { links, attributes } of commits())
    expect(attributes["db.operation.batch.size"]).toBe(links.length === 1 ? undefined : links.length);
});

test("a server exports metrics at intervals, and once more when it stops", async () => {
  await using collector = await startOtlpReceiver();
  const variables = { OTEL_METRIC_EXPORT_INTERVAL: "20", OTEL_TRACES_EXPORTER: "none" };
  await using traced = await startWithCommits(collector.url, variables);
  await deletePlant(traced, 1n);
  const expected = ["rpc.server.call.duration", "gateway.connections", "db.client.operation.duration"];
  await expect.poll(() => [...collector.metrics]).toEqual(expect.arrayContaining(expected));
  expect(collector.spans).toEqual([]);
  const before = collector.requests.length;
  await traced.server.drain();
  expect(collector.requests.length).toBeGreaterThan(before);
  // The export timeout of 30 s keeps no process alive. Closing connections' timers may remain a little longer.
  const untilMs = performance.now() + 10_000;
  while (countRefTimers() > timersOfOthers && performance.now() < untilMs) await nextTurn();
  expect(countRefTimers()).toBeLessThanOrEqual(timersOfOthers);
});

/** Timers of test files that ran earlier in this process. */
const timersOfOthers = countRefTimers();

test.each<{ name: string; respond: OtlpReceiver["respond"] | undefined }>([
  { name: "refuses exports", respond: (response) => void response.writeHead(400).end("no".repeat(1_000_000)) },
  { name: "is overloaded", respond: (response) => void response.writeHead(503, { "retry-after": "3600" }).end() },
  { name: "never responds", respond: () => undefined },
  { name: "redirects", respond: (response) => void response.writeHead(307, { location: "http://127.0.0.1:1/" }).end() },
  { name: "is unreachable", respond: undefined },
])("a collector that $name does not delay calls or the drain", async ({ respond }) => {
  await using collector = await startOtlpReceiver();
  collector.respond = (response) => respond?.(response);
  // The timeout is an hour, so that it does not affect the test.
  const variables = { OTEL_EXPORTER_OTLP_TIMEOUT: "3600000" };
  await using traced = await start(respond === undefined ? "http://127.0.0.1:1" : collector.url, variables);
  for (let id = 1n; id <= 20n; id++) await deletePlant(traced, id);
  expect(traced.lines("call").map(({ code }) => code)).toEqual(Array(20).fill("OK"));
  // The limit is lower than 30 s, after which the SDK itself stops waiting.
  await within(traced.server.drain(), "the drain", 20_000);
  expect(traced.lines("stopped")).toHaveLength(1);
});

test("a server logs repeated failures of an export once", async () => {
  await using collector = await startOtlpReceiver();
  collector.respond = (response) => void response.writeHead(400).end();
  await using traced = await start(collector.url, { OTEL_METRICS_EXPORTER: "none" });
  for (let id = 1n; id <= 3n; id++) {
    await deletePlant(traced, id);
    await expect.poll(() => collector.requests.length).toBe(Number(id));
  }
  const problems = (): unknown[] => traced.lines("OpenTelemetry reports a problem");
  await expect.poll(problems).toMatchObject([{ errorCode: "ERR_TELEMETRY", level: "warn", problem: "Bad Request" }]);
});

test("a server reports invalid OpenTelemetry variables and uses the defaults", async () => {
  await using collector = await startOtlpReceiver();
  // oxfmt-ignore
  await using traced = await startWithCommits(collector.url, {
    OTEL_TRACES_SAMPLER: "sometimes", OTEL_EXPORTER_OTLP_PROTOCOL: "transport-pigeon",
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "nowhere", OTEL_METRIC_EXPORT_INTERVAL: "often",
    OTEL_PROPAGATORS: "tracecontext,owl", OTEL_EXPORTER_OTLP_HEADERS: "secret,",
    OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY: "/no/key.pem",
  });
  await deletePlant(traced, 1n);
  await expect.poll(() => collector.spans.length).toBe(2);
  const problems = traced.lines("OpenTelemetry reports a problem").map(({ problem }) => String(problem));
  const named = [
    "TRACES_SAMPLER",
    "transport-pigeon",
    "nowhere",
    "INTERVAL",
    "owl",
    // The SDK's message about the client key file.
    "private key file",
  ];
  expect(problems).toEqual(expect.arrayContaining(named.map((name) => expect.stringContaining(name))));
  expect(problems.join()).not.toContain("secret");
  expect(problems).toHaveLength(named.length);
});

describe("the OpenTelemetry SDK", () => {
  async function spanOf(collector: OtlpReceiver, variables: Record<string, string>, field: Field): Promise<Span> {
    await using traced = await start(collector.url, { OTEL_METRICS_EXPORTER: "none", ...variables });
    await exchange(traced.server, "2", deletePlantRequest(wireFormats.grpc, 1n, [bearer(token), field]));
    await expect.poll(() => collector.spans.length).toBe(1);
    expect(traced.lines("OpenTelemetry reports a problem")).toEqual([]);
    return collector.spans[0];
  }

  const traceparent = ["traceparent", `00-${traceId}-${parentId}-01`] as const;

  test.each<{ name: string; variables: Record<string, string>; want: object }>([
    { name: "_COMPRESSION", variables: { COMPRESSION: "gzip" }, want: { "content-encoding": "gzip" } },
    { name: "_HEADERS", variables: { HEADERS: "x-key=a%20b" }, want: { "x-key": "a b" } },
    { name: "_PROTOCOL=http/json", variables: { PROTOCOL: "http/json" }, want: { "content-type": "application/json" } },
  ])("uses OTEL_EXPORTER_OTLP$name for its exports", async ({ variables, want }) => {
    await using collector = await startOtlpReceiver();
    const prefixed = Object.entries(variables).map(([name, value]) => [`OTEL_EXPORTER_OTLP_${name}`, value] as const);
    expect(await spanOf(collector, Object.fromEntries(prefixed), traceparent)).toMatchObject({ traceId });
    expect(collector.requests[0]?.headers).toMatchObject(want);
  });

  test("uses OTEL_PROPAGATORS=b3 for incoming calls", async () => {
    await using collector = await startOtlpReceiver();
    const span = await spanOf(collector, { OTEL_PROPAGATORS: "b3" }, ["b3", `${traceId}-${parentId}-1`]);
    expect(span).toMatchObject({ traceId, parentSpanId: parentId });
  });

  test("uses OTEL_EXPORTER_OTLP_CERTIFICATE for its exports", async () => {
    using folder = createTempFolder();
    const certificate = createCertificate("collector");
    writeFileSync(folder.file("ca.pem"), certificate.cert);
    await using collector = await startOtlpReceiver(certificate);
    const variables = { OTEL_EXPORTER_OTLP_CERTIFICATE: folder.file("ca.pem") };
    expect(await spanOf(collector, variables, traceparent)).toMatchObject({ traceId });
  });

  test("uses OTEL_EXPORTER_OTLP_PROTOCOL=grpc for its exports", async () => {
    const paths: unknown[] = [];
    const collector = createServer();
    collector.on("stream", (stream: ServerHttp2Stream, fields) => {
      paths.push(fields[":path"]);
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.resume().end(Buffer.alloc(5));
    });
    const url = await listenOnLoopback(collector);
    {
      await using traced = await start(url, { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" });
      await deletePlant(traced, 1n);
    }
    const services = ["trace.v1.TraceService", "metrics.v1.MetricsService"];
    const want = services.map((service) => `/opentelemetry.proto.collector.${service}/Export`);
    expect(new Set(paths)).toEqual(new Set(want));
    collector.close();
  });
});

const disabling = [{ OTEL_SDK_DISABLED: "true" }, { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }];
test.each(disabling)("with %j, a server exports nothing", async (variables) => {
  await using collector = await startOtlpReceiver();
  await using traced = await start(collector.url, variables);
  await deletePlant(traced, 1n);
  await traced.server.drain();
  expect(collector.requests).toEqual([]);
  expect(traced.lines("call")[0]).not.toHaveProperty("traceId");
});
