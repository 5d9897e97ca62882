import type { CompletedRequest } from "@protoport/gateway";
import { refuseUnknownOptions } from "@protoport/gateway/options";
import { durationBounds, type Instrument, type Instruments } from "./instruments.ts";
import { httpAttributes, httpSeriesKey, isRpcProtocol, rpcAttributes, rpcSeriesKey } from "./request-attributes.ts";

type Counter = InstrumentSeries<Instruments["counter"]>;
type Histogram = InstrumentSeries<Instruments["histogram"]>;
type InstrumentSeries<Create extends (...about: never) => Instrument<unknown>> = ReturnType<ReturnType<Create>["with"]>;

/** Options for {@link createRequestMetrics}. */
export interface RequestMetricsOptions {
  /**
   * Returns why a request was refused, or `undefined` if the request was not refused. Each returned value becomes a
   * series, so the function must return only a few different values, which clients cannot choose.
   */
  readonly refusalOf?: ((request: CompletedRequest) => string | undefined) | undefined;
}

/**
 * Creates an `onResponse` callback that records request durations. Calls over gRPC, gRPC-Web and Connect are recorded
 * in `rpc.server.call.duration`, and all other requests, including REST, in `http.server.request.duration`.
 *
 * @throws TypeError for unknown options
 */
export function createRequestMetrics(
  metrics: Instruments,
  options: RequestMetricsOptions = {},
): (request: CompletedRequest) => void {
  refuseUnknownOptions(options, { refusalOf: true }, "createRequestMetrics");
  const { refusalOf } = options;
  const recordDuration = createRequestDurations(metrics);
  if (refusalOf === undefined) return recordDuration;
  const refusals = metrics.counter({
    name: "gateway.refusals",
    unit: "{request}",
    description: "Requests rejected before they were handled, by reason",
  });
  const countersByKind = new Map<string, Counter>();
  return (request) => {
    recordDuration(request);
    const kind = request.error === undefined ? undefined : refusalOf(request);
    if (kind !== undefined) findOrCreate(countersByKind, kind, () => refusals.with({ kind })).add(1);
  };
}

/** Creates a function that records a request duration in its protocol's histogram. */
export function createRequestDurations(metrics: Pick<Instruments, "histogram">): (request: CompletedRequest) => void {
  const rpc = metrics.histogram(
    { name: "rpc.server.call.duration", unit: "s", description: "Duration of calls over gRPC, gRPC-Web and Connect" },
    durationBounds,
  );
  const http = metrics.histogram(
    { name: "http.server.request.duration", unit: "s", description: "Duration of REST calls and other HTTP requests" },
    durationBounds,
  );
  // Two map lookups find a series, because building a string key would cost more than the rest of the callback.
  const rpcSeries = new Map<string, Map<number, Histogram>>();
  const httpSeries = new Map<string, Map<number, Histogram>>();
  return (request) => {
    const seconds = request.durationMs / 1_000;
    if (isRpcProtocol(request.protocol)) {
      const methodSeries = findOrCreate(rpcSeries, request.procedure ?? "", newSeriesMap);
      findOrCreate(methodSeries, rpcSeriesKey(request), () => rpc.with(rpcAttributes(request))).record(seconds);
    } else {
      const routeSeries = findOrCreate(httpSeries, request.httpRoute ?? "", newSeriesMap);
      findOrCreate(routeSeries, httpSeriesKey(request), () => http.with(httpAttributes(request))).record(seconds);
    }
  };
}

function newSeriesMap(): Map<number, Histogram> {
  return new Map();
}

function findOrCreate<Key, One>(known: Map<Key, One>, key: Key, create: () => One): One {
  const existing = known.get(key);
  if (existing !== undefined) return existing;
  const created = create();
  known.set(key, created);
  return created;
}
