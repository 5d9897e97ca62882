import type { PlantServerOptions } from "../../src/index.ts";
import type { ParseResult } from "@protoport/auth/inputs";
import { importEntry } from "../../protoport/bench/servers/package-code.ts";
import { benchToken, createBenchPlants } from "./plants.ts";
import { serve } from "../../protoport/bench/servers/serve.ts";
import { certificate } from "../../protoport/bench/servers/tls.ts";
import { fakeStore } from "../../test/support/plants/fake-store.ts";

// The plant store as it runs in production, with a store in memory and without a log. The server serves all protocols
// on one port, and has credentials, request ids, safe errors and health probes.

const { createPlantServer, openTokenVerifier, parsePlainTokens } = await importEntry<
  typeof import("../../src/index.ts")
>("src/index.ts", "src/plantstore/index.ts");

const noLog = { info: (): void => {}, warn: (): void => {} };
const plants = createBenchPlants();
const server = createPlantServer({
  verifier: valueOf(await openTokenVerifier({ tokens: valueOf(parsePlainTokens(benchToken)) }, noLog)),
  store: fakeStore({ delete: (id) => Promise.resolve(plants.delete(id)) }),
  ...(await tools()),
  ...(await measured()),
});
await serve(() =>
  server.listen({
    host: "127.0.0.1",
    ...(certificate && { tls: certificate }),
  }),
);

/** MCP is imported only if it is measured, like the telemetry below. */
async function tools(): Promise<Pick<PlantServerOptions, "tools">> {
  if (process.env["TOOLS"] !== "on") return {};
  const { createPlantTools } = await importEntry<typeof import("../../src/server/plant-tools.ts")>(
    "src/server/plant-tools.ts",
    "src/plantstore/server/plant-tools.ts",
  );
  return { tools: createPlantTools() };
}

/** Telemetry is imported only if it is measured, because a checkout that is compared may not have telemetry. */
async function measured(): Promise<Partial<PlantServerOptions>> {
  const [isMeasured, isTraced] = [process.env["METRICS"] === "on", process.env["TRACES"] === "on"];
  if (!isMeasured && !isTraced) return {};
  const { createRequestMetrics, Metrics } = await importEntry<typeof import("@protoport/telemetry/metrics")>(
    "protoport/telemetry/src/metrics/index.ts",
    "packages/telemetry/src/metrics/index.ts",
  );
  const count = createRequestMetrics(new Metrics());
  if (!isTraced) return { onResponse: count };
  await registerSdk();
  const { createTracing } = await importEntry<typeof import("@protoport/telemetry/opentelemetry")>(
    "protoport/telemetry/src/opentelemetry/index.ts",
    "packages/telemetry/src/opentelemetry/index.ts",
  );
  const { onRequest, onResponse, interceptor } = createTracing({ anonymous: true });
  const traced = { onRequest, onResponse, interceptors: [interceptor] };
  if (!isMeasured) return traced;
  // The callbacks are combined as in the command `plantstore serve`.
  const both: typeof onResponse = (response) => {
    count(response);
    onResponse(response);
  };
  return { ...traced, onResponse: both };
}

/** Registers OpenTelemetry's SDK, which samples one trace in a hundred, without an exporter. */
async function registerSdk(): Promise<void> {
  const { NodeSDK } = await import("@opentelemetry/sdk-node");
  const { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } = await import("@opentelemetry/sdk-trace");
  new NodeSDK({
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(0.01) }),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: { export: (_, done) => done({ code: 0 }), shutdown: noWait } }),
    ],
  }).start();
}

async function noWait(): Promise<void> {}

function valueOf<T>(parsed: ParseResult<T>): T {
  if (parsed.kind === "problems") throw new Error(parsed.problems.join("; "));
  return parsed.value;
}
