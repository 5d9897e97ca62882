import { expect, test } from "vitest";
import { requestedSignals } from "../../src/server/opentelemetry-variables.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
test.for<[environment: NodeJS.ProcessEnv, signals: readonly string[]]>([
  [{}, []],
  [endpoint, ["traces", "metrics"]],
  [{ ...endpoint, OTEL_SDK_DISABLED: "True" }, []],
  [{ ...endpoint, OTEL_SDK_DISABLED: "1" }, ["traces", "metrics"]],
  [{ ...endpoint, OTEL_TRACES_EXPORTER: "none" }, ["metrics"]],
  [{ ...endpoint, OTEL_METRICS_EXPORTER: "" }, ["traces", "metrics"]],
  [{ OTEL_METRICS_EXPORTER: "otlp" }, ["metrics"]],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" }, ["traces"]],
])("%j requests the signals %j", ([environment, signals]) => {
  expect([...requestedSignals(environment)]).toEqual(signals);
});
