import type { GatewayLoad } from "../carriers/sockets/index.ts";
import type { NumberPoint } from "./metric-family.ts";
import { type Metrics, single } from "./metrics.ts";

/** The parts of a gateway that are measured. */
export interface MeasuredGateway {
  readonly load: GatewayLoad;
}

/** The parts of a server's readiness that are measured, as `Readiness` of `@plantstore/gateway/health` has them. */
export interface MeasuredReadiness {
  readonly draining: AbortSignal;
  obstacles(): readonly string[];
}

/** Adds metrics of a gateway's port: connections, requests, bytes that clients do not take, and violations of HTTP. */
export function measureGateway(metrics: Metrics, gateway: MeasuredGateway): void {
  metrics.gauge({ name: "gateway.connections", unit: "{connection}", description: "Open connections" }, () =>
    byVersion(gateway.load.connections),
  );
  metrics.gauge(
    {
      name: "gateway.requests.active",
      unit: "{request}",
      description: "Requests that are not answered yet; on HTTP/2 each is a stream",
    },
    () => byVersion(gateway.load.requests),
  );
  metrics.gauge(
    { name: "gateway.backlog", unit: "By", description: "Bytes that wait because clients do not take them" },
    () => single(gateway.load.backlogBytes),
  );
  metrics.observedCounter(
    { name: "gateway.bad_requests", unit: "{request}", description: "Requests that were answered as wrong HTTP" },
    () =>
      [...gateway.load.badRequests].map(([status, value]) => ({
        attributes: { "http.response.status_code": status },
        value,
      })),
  );
  metrics.observedCounter(
    {
      name: "gateway.http2.errors",
      unit: "{error}",
      description: "Streams of HTTP/2 that were refused or reset for their frames, and connections ended with an error",
    },
    () => (["connection", "stream"] as const).flatMap((scope) => http2Errors(scope, gateway.load.http2Errors[scope])),
  );
}

function http2Errors(scope: string, counts: ReadonlyMap<string, number>): readonly NumberPoint[] {
  return [...counts].map(([code, value]) => ({ attributes: { scope, code }, value }));
}

/** Adds gauges that say whether the server is ready, and whether it drains. */
export function measureReadiness(metrics: Metrics, readiness: MeasuredReadiness): void {
  metrics.gauge({ name: "gateway.ready", unit: "", description: "1 while calls may be sent here, else 0" }, () =>
    single(readiness.obstacles().length === 0 ? 1 : 0),
  );
  metrics.gauge({ name: "gateway.draining", unit: "", description: "1 once the server is stopping, else 0" }, () =>
    single(readiness.draining.aborted ? 1 : 0),
  );
}

function byVersion({ http1, http2 }: Readonly<Record<"http1" | "http2", number>>): readonly NumberPoint[] {
  return [
    { attributes: { "network.protocol.version": "1.1" }, value: http1 },
    { attributes: { "network.protocol.version": "2" }, value: http2 },
  ];
}
