import type { AnsweredRequest } from "@plantstore/gateway";
import { durationBounds, type Metrics } from "./metrics.ts";
import type { HistogramSeries } from "./series.ts";
import { httpAttributes, rpcAttributes, seriesKey } from "./request-attributes.ts";

/** Options of {@link createRequestMetrics}. */
export interface RequestMetricsOptions {
  /**
   * Returns why a request was refused, or `undefined` if it was not. Each word becomes a series, so there must be few,
   * and none that a client can choose.
   */
  readonly refusalOf?: ((answer: AnsweredRequest) => string | undefined) | undefined;
}

/**
 * Creates the `onAnswer` of a gateway that counts its requests: calls over gRPC, gRPC-Web and Connect in
 * `rpc.server.call.duration`, all others, REST among them, in `http.server.request.duration`.
 */
export function createRequestMetrics(
  metrics: Metrics,
  { refusalOf }: RequestMetricsOptions = {},
): (answer: AnsweredRequest) => void {
  const rpc = metrics.histogram(
    { name: "rpc.server.call.duration", unit: "s", description: "Duration of calls over gRPC, gRPC-Web and Connect" },
    durationBounds,
  );
  const http = metrics.histogram(
    { name: "http.server.request.duration", unit: "s", description: "Duration of REST calls and other HTTP requests" },
    durationBounds,
  );
  // Attributes are made once for each series.
  const known = new Map<string, HistogramSeries>();
  const count = (answer: AnsweredRequest): void => {
    const key = seriesKey(answer);
    let series = known.get(key);
    if (series === undefined) {
      series = answer.protocol === "rest" ? http.with(httpAttributes(answer)) : rpc.with(rpcAttributes(answer));
      known.set(key, series);
    }
    series.record(answer.durationMs / 1_000);
  };
  if (refusalOf === undefined) return count;
  const refusals = metrics.counter({
    name: "gateway.refusals",
    unit: "{request}",
    description: "Requests that were refused before anything was done for them, by reason",
  });
  return (answer) => {
    count(answer);
    const kind = answer.error === undefined ? undefined : refusalOf(answer);
    if (kind !== undefined) refusals.with({ kind }).add(1);
  };
}
