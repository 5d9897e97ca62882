import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createGateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { compareValues, Differs, type EffectsOf } from "../../../testing/src/comparison.ts";
import { type LogLines, openLogLines } from "../../../testing/src/operations/log-lines.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import type { CallLogOptions } from "../../src/logs/call-log.ts";
import type { SafeErrorsOptions } from "../../src/logs/safe-errors.ts";
import type { RequestMetricsOptions } from "../../src/conventions/request-metrics.ts";
import { createCallLog, createSafeErrors, silentLog } from "../../src/logs/index.ts";
import { createRequestMetrics, Metrics } from "../../src/metrics/index.ts";
import { type TracingOptions, withOpenTelemetry } from "../../src/opentelemetry/index.ts";

// Logs and measures requests with two values for each option, and compares the lines, the metrics and the spans.

function fail(): never {
  throw new ConnectError("again", Code.Unavailable);
}

/** Sends a request without a route, which is refused, and one to an endpoint that fails. */
async function request(options: Partial<GatewayOptions>): Promise<void> {
  const endpoints = [{ path: "/fails", open: true, handle: fail }];
  const { fetch } = createGateway({ routes: () => undefined, endpoints, ...options });
  for (const path of ["/nowhere", "/fails"]) await (await fetch(new Request(`http://a${path}`))).text();
}

const usual: CallLogOptions = { log: silentLog, auditOf: () => ({ trail: undefined, fields: {} }) };

/** Compares the lines that are written to a log. */
function compareLines(
  off: Partial<CallLogOptions>,
  on: (lines: LogLines) => Partial<CallLogOptions>,
): Promise<Differs> {
  return compareValues(false, true, async (isOn) => {
    const lines = openLogLines("info");
    const { log } = openLogLines("info");
    const onResponse = createCallLog({ ...usual, log, ...off, ...(isOn && on(lines)) });
    await request(onResponse === undefined ? {} : { onResponse });
    return lines.lines().map(({ path, tenant }) => [path, tenant]);
  });
}

const callLogEffects: EffectsOf<CallLogOptions> = {
  log: () => compareLines({}, ({ log }) => ({ log })),
  auditLog: () =>
    compareLines({ auditOf: () => ({ trail: "refusals", fields: {} }) }, ({ log }) => ({ auditLog: log })),
  deletionLog: () =>
    compareLines({ auditOf: () => ({ trail: "deletions", fields: {} }) }, ({ log }) => ({ deletionLog: log })),
  auditOf: () => {
    const { log, lines } = openLogLines("info");
    return compareValues<Partial<CallLogOptions>>(
      {},
      { auditOf: () => ({ trail: undefined, fields: { tenant: "a" } }) },
      async (more) => {
        const before = lines().length;
        const onResponse = createCallLog({ ...usual, log, ...more });
        await request(onResponse === undefined ? {} : { onResponse });
        return lines()
          .slice(before)
          .map(({ tenant }) => tenant);
      },
    );
  },
  isSilent: () => {
    const { log, lines } = openLogLines("info");
    return compareValues<Partial<CallLogOptions>>({}, { isSilent: () => true }, async (more) => {
      const before = lines().length;
      const onResponse = createCallLog({ ...usual, log, ...more });
      await request(onResponse === undefined ? {} : { onResponse });
      return lines().length - before;
    });
  },
};

const safeErrorEffects: EffectsOf<SafeErrorsOptions> = {
  log: () =>
    compareValues(false, true, async (isOn) => {
      const { log, lines } = openLogLines("info");
      const toError = createSafeErrors({ log: isOn ? log : silentLog });
      const signal = new AbortController().signal;
      const call = { service: { typeName: "a.B" }, method: { name: "C" }, signal, values: createContextValues() };
      Reflect.apply(toError, undefined, [new Error("a fault"), call]);
      return lines().length;
    }),
};

const metricEffects: EffectsOf<RequestMetricsOptions> = {
  refusalOf: () =>
    compareValues<RequestMetricsOptions>({}, { refusalOf: () => "unmatched" }, async (options) => {
      const metrics = new Metrics();
      await request({ onResponse: createRequestMetrics(metrics, options) });
      return metrics.collect().map(({ name }) => name);
    }),
};

const tracingEffects: EffectsOf<TracingOptions> = {
  anonymous: () =>
    compareValues<TracingOptions>({}, { anonymous: true }, async (tracing) => {
      using sdk = registerSdk();
      const { fetch } = createGateway(withOpenTelemetry({ routes: () => undefined }, tracing));
      await (await fetch(new Request("http://a/nowhere", { headers: { "user-agent": "a browser" } }))).text();
      return sdk.spans.map(({ attributes }) => [attributes["url.path"], attributes["user_agent.original"]]);
    }),
};

test.each([
  ...Object.entries(tracingEffects).map(([name, comparison]) => ({ owner: "createTracing", name, comparison })),
  ...Object.entries(callLogEffects).map(([name, comparison]) => ({ owner: "createCallLog", name, comparison })),
  ...Object.entries(safeErrorEffects).map(([name, comparison]) => ({ owner: "createSafeErrors", name, comparison })),
  ...Object.entries(metricEffects).map(([name, comparison]) => ({ owner: "createRequestMetrics", name, comparison })),
])("the option $name of $owner has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
