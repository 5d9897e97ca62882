import type { AnsweredRequest } from "@plantstore/gateway/internal/serve";
import { refuseUnknownOptions } from "@plantstore/gateway/options";
import { durationBounds, type Instrument, type Instruments } from "./instruments.ts";
import { httpAttributes, httpSeriesKey, isRpcProtocol, rpcAttributes, rpcSeriesKey } from "./request-attributes.ts";

type Counter = SeriesOf<Instruments["counter"]>;
type Histogram = SeriesOf<Instruments["histogram"]>;
type SeriesOf<Create extends (...about: never) => Instrument<unknown>> = ReturnType<ReturnType<Create>["with"]>;

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
 *
 * @throws TypeError for options that do not exist
 */
export function createRequestMetrics(
  metrics: Instruments,
  options: RequestMetricsOptions = {},
): (answer: AnsweredRequest) => void {
  refuseUnknownOptions(options, { refusalOf: true }, "createRequestMetrics");
  const { refusalOf } = options;
  const count = createRequestDurations(metrics);
  if (refusalOf === undefined) return count;
  const refusals = metrics.counter({
    name: "gateway.refusals",
    unit: "{request}",
    description: "Requests rejected before they were handled, by reason",
  });
  const byKind = new Map<string, Counter>();
  return (answer) => {
    count(answer);
    const kind = answer.error === undefined ? undefined : refusalOf(answer);
    if (kind !== undefined) findOrOpen(byKind, kind, () => refusals.with({ kind })).add(1);
  };
}

/** Creates a function that records how long a request took, in the histogram of its protocol. */
export function createRequestDurations(metrics: Pick<Instruments, "histogram">): (answer: AnsweredRequest) => void {
  const rpc = metrics.histogram(
    { name: "rpc.server.call.duration", unit: "s", description: "Duration of calls over gRPC, gRPC-Web and Connect" },
    durationBounds,
  );
  const http = metrics.histogram(
    { name: "http.server.request.duration", unit: "s", description: "Duration of REST calls and other HTTP requests" },
    durationBounds,
  );
  // Two look-ups find a series. Making a text to look it up by would cost more than everything else.
  const rpcSeries = new Map<string, Map<number, Histogram>>();
  const httpSeries = new Map<string, Map<number, Histogram>>();
  return (answer) => {
    const seconds = answer.durationMs / 1_000;
    if (isRpcProtocol(answer.protocol)) {
      const ofMethod = findOrOpen(rpcSeries, answer.procedure ?? "", newSeriesMap);
      findOrOpen(ofMethod, rpcSeriesKey(answer), () => rpc.with(rpcAttributes(answer))).record(seconds);
    } else {
      const ofRoute = findOrOpen(httpSeries, answer.httpRoute ?? "", newSeriesMap);
      findOrOpen(ofRoute, httpSeriesKey(answer), () => http.with(httpAttributes(answer))).record(seconds);
    }
  };
}

function newSeriesMap(): Map<number, Histogram> {
  return new Map();
}

function findOrOpen<Key, One>(known: Map<Key, One>, key: Key, open: () => One): One {
  const found = known.get(key);
  if (found !== undefined) return found;
  const opened = open();
  known.set(key, opened);
  return opened;
}
