import { setTimeout as pause } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { GetReadingRequestSchema, GreenhouseService, WatchReadingsRequestSchema
} from "../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createReflectionService, ServerReflection } from "@protoport/gateway/reflection";
import { type HttpBalancer, httpBalancers } from "../../support/balancers/http-balancers.ts";
import { type LeftRequest, openLeavingClients } from "../../support/balancers/leaving-clients.ts";
// oxfmt-ignore
import { buildLimitMs, createTempFolder, createTestGateway, encodeEnvelope, getReadingProcedure, type HttpVersion,
  wireFormats } from "@protoport/testing";
import { startProxyProcess } from "../../../protoport/testing/src/gateway/proxy-process.ts";
import { deletePlantProcedure, encodeDeletePlant, runSql, startPostgres } from "../../support/plants/index.ts";
import { startCommandLine } from "../../support/process/command-line.ts";
import { readSamples } from "../../../protoport/testing/src/telemetry/samples.ts";

// Clients behind load balancers cancel calls to both commands, and no metric counts an error.

const clientCount = 32;
/** A call that its client cancels, and its state on the server at that time. */
type LeftCall = { name: string; version: HttpVersion; state: "waits" | "writes"; request(number: number): LeftRequest };

/** A command that serves, and its database or upstream. */
interface Served extends AsyncDisposable {
  readonly port: number;
  readonly adminUrl: string;
  readonly calls: readonly LeftCall[];
  cancelled(): number;
  /** Minimum number of cancelled waiting calls. Other calls may get a response before the server detects the cancel. */
  readonly minCancelled: number;
  /** The log lines at level error. The proxy has no log levels, so its complete standard error. */
  faults(): readonly string[];
}

const token = "token-of-the-clients-that-leave";
const authorized = { authorization: `Bearer ${token}` };
const grpc = { "content-type": "application/grpc+proto", te: "trailers" };
const grpcWeb = { "content-type": "application/grpc-web+proto" };

function post(path: string, header: Readonly<Record<string, string>>, message: Uint8Array): LeftRequest {
  return { httpMethod: "POST", path, header, body: encodeEnvelope(0, message) };
}

const both: readonly HttpVersion[] = ["1.1", "2"];

// A batch takes 3.5 s, less than the statement timeout of 5 s. The first of 32 deletions is a batch, and 31 are queued.
const slowCommits = `
  CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3.5); RETURN NULL; END';
  CREATE TRIGGER wait AFTER DELETE ON plants EXECUTE FUNCTION wait()`;

async function startStore(): Promise<Served> {
  await using starting = new AsyncDisposableStack();
  const folder = starting.use(createTempFolder());
  const postgres = starting.use(await startPostgres());
  const url = await postgres.createPlants(Array.from({ length: 5_000 }, (_, at) => BigInt(at + 1)));
  await runSql(url, slowCommits);
  // oxfmt-ignore
  const server = starting.use(
    startCommandLine(["serve"], folder.path, {
      DATABASE_URL: url, PORT: "0", PLANTSTORE_TOKENS: token, PLANTSTORE_DRAIN_DELAY_MS: "0",
      PLANTSTORE_ADMIN_ADDRESS: "0", LOG_LEVEL: "info", PLANTSTORE_AUDIT: "by-level",
    }),
  );
  const [, admin = ""] = await server.find(/"port":(\d+),"msg":"serving metrics"/);
  const [, port = ""] = await server.find(/"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/);
  const lines = (): readonly Record<string, unknown>[] =>
    server
      .stderr()
      .split("\n")
      .slice(0, -1)
      .map((line): Record<string, unknown> => JSON.parse(line));
  const watch = "/grpc.health.v1.Health/Watch";
  const running = starting.move();
  return {
    port: Number(port),
    adminUrl: `http://127.0.0.1:${admin}`,
    // oxfmt-ignore
    calls: [
      ...both.flatMap((version): LeftCall[] => [
        {
          name: "deletions over REST",
          version,
          state: "waits",
          request: (id) => ({ httpMethod: "DELETE", path: `/plants/${id}`, header: authorized }),
        },
      ]),
      { name: "streams over gRPC-Web", version: "1.1", state: "writes",
        request: () => post(watch, grpcWeb, new Uint8Array()) },
      { name: "deletions over gRPC", version: "2", state: "waits", request: (id) =>
          post(deletePlantProcedure, { ...grpc, ...authorized }, encodeDeletePlant(wireFormats.grpc, BigInt(id))) },
      { name: "streams over gRPC", version: "2", state: "writes", request: () => post(watch, grpc, new Uint8Array()) },
    ],
    cancelled: () => lines().filter(({ code }) => code === "Canceled").length,
    minCancelled: 1,
    faults: () =>
      lines()
        .filter(({ level }) => level === "error" || level === "fatal")
        .map((line) => JSON.stringify(line)),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Larger than a frame or two, so that a few messages fill the balancers' buffers. */
const readingBytes = 20_000;

async function startProxy(): Promise<Served> {
  let cancelled = 0;
  const countEnd = (signal: AbortSignal): void => signal.addEventListener("abort", () => cancelled++);
  const upstream = createTestGateway({
    routes: (router) => {
      router.service(GreenhouseService, {
        getReading: (_, { signal }) => {
          countEnd(signal);
          return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        },
        async *watchReadings(_, { signal }) {
          countEnd(signal);
          for (; !signal.aborted; await pause(1)) yield { sensor: "s".repeat(readingBytes) };
        },
      });
      router.service(ServerReflection, createReflectionService([GreenhouseService]));
    },
  });
  await using starting = new AsyncDisposableStack();
  starting.defer(() => upstream.close());
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  const words = ["--port", "0", "--drain-delay-ms", "0", "--upstream", `http://127.0.0.1:${port}`, "--reflection"];
  const proxy = starting.use(await startProxyProcess(words));
  const message = toBinary(GetReadingRequestSchema, create(GetReadingRequestSchema));
  const watched = toBinary(WatchReadingsRequestSchema, create(WatchReadingsRequestSchema));
  const watch = `/${GreenhouseService.typeName}/WatchReadings`;
  const running = starting.move();
  return {
    port: proxy.port,
    adminUrl: proxy.adminUrl,
    // oxfmt-ignore
    calls: [
      ...both.flatMap((version): LeftCall[] => [
        { name: "calls over REST", version, state: "waits",
          request: (number) => ({ httpMethod: "GET", path: `/sensors/${number}/reading`, header: {} }) },
        { name: "streams over gRPC-Web", version, state: "writes", request: () => post(watch, grpcWeb, watched) },
      ]),
      { name: "calls over gRPC", version: "2", state: "waits",
        request: () => post(getReadingProcedure, grpc, message) },
      { name: "streams over gRPC", version: "2", state: "writes", request: () => post(watch, grpc, watched) },
    ],
    cancelled: () => cancelled,
    minCancelled: clientCount,
    faults: () => proxy.command.stderr().split("\n").slice(0, -1),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** The metrics that the alert PlantstoreErrors uses. */
const alertSeries = /^(?:rpc_server_call|http_server_request|db_client_operation)_duration_seconds_count$/;

const samplesOf = async ({ adminUrl }: Served) => readSamples(await (await fetch(`${adminUrl}/metrics`)).text());

async function openRequests(served: Served): Promise<number> {
  const samples = (await samplesOf(served)).filter(({ name }) => name === "gateway_requests_active");
  return samples.reduce((sum, { value }) => sum + value, 0);
}

describe.each([
  { server: "the plant store", start: startStore },
  { server: "the proxy", start: startProxy },
])("$server", ({ start }) => {
  const opened = new AsyncDisposableStack();
  const balancers = new Map<string, HttpBalancer>();
  let served: Served;
  let number = 0;

  beforeAll(async () => {
    served = opened.use(await start());
    for (const { name, start: startBalancer } of httpBalancers)
      balancers.set(name, opened.use(await startBalancer(served.port)));
  }, buildLimitMs);
  afterAll(() => opened.disposeAsync());

  test.each(httpBalancers)(
    "behind $name counts cancelled calls, and reports no errors",
    { timeout: 120_000 },
    async ({ name }) => {
      const balancer = balancers.get(name);
      if (balancer === undefined) throw new Error(`${name} was not started`);
      for (const { name: what, version, state, ...call } of served.calls) {
        const cancelledBefore = served.cancelled();
        const requests = Array.from({ length: clientCount }, () => call.request(++number));
        using clients = openLeavingClients(version, balancer.ports[version], requests);
        if (state === "waits") await expect.poll(() => openRequests(served)).toBe(clientCount);
        else await clients.begun();
        clients.leave();
        const message = `${what} over HTTP/${version}`;
        await expect.poll(() => openRequests(served), { message }).toBe(0);
        const ended = (): number => served.cancelled() - cancelledBefore;
        const endedMin = state === "waits" ? served.minCancelled : clientCount;
        await expect.poll(ended, { message }).toBeGreaterThanOrEqual(endedMin);
      }
      expect(served.faults()).toEqual([]);
      const errors = (await samplesOf(served)).filter(
        ({ name: metric, labels }) => alertSeries.test(metric) && labels["error_type"],
      );
      expect(errors.filter(({ value }) => value > 0)).toEqual([]);
    },
  );
});
