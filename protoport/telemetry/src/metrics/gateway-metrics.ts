import type { GatewayLoad } from "@protoport/gateway";
import type { Attributes } from "../conventions/index.ts";
import { type Metrics, type NumberPoint, singlePoint } from "./metrics.ts";

/** The gateway properties that {@link measureGateway} reads. */
export interface MeasuredGateway {
  readonly load: GatewayLoad;
}

/** The outcome of the last reload. */
export interface MeasuredReload {
  /** The reason why the last reload failed and the previous content is still in use. `undefined` after a success. */
  readonly problem: string | undefined;
  /** Unix time of the last successful reload, in ms. `undefined` if no reload has succeeded. */
  readonly lastSuccessMs: number | undefined;
}

/** A watched file, or several files that are reloaded together, such as a certificate and its key. */
export interface MeasuredFile extends MeasuredReload {
  /** The metrics' label `file_path`. */
  readonly path: string;
}

/** The measured properties of a server's readiness, from `Readiness` in `@protoport/gateway/health`. */
export interface MeasuredReadiness {
  readonly draining: AbortSignal;
  obstacles(): readonly string[];
}

/** Adds a gateway's metrics: connections, requests, buffered response bytes, and HTTP client errors. */
export function measureGateway(metrics: Metrics, gateway: MeasuredGateway): void {
  metrics.gauge({ name: "gateway.connections", unit: "{connection}", description: "Open connections" }, () =>
    byVersion(gateway.load.connections),
  );
  metrics.gauge(
    {
      name: "gateway.requests.active",
      unit: "{request}",
      description: "Requests in progress; on HTTP/2 each is a stream",
    },
    () => byVersion(gateway.load.requests),
  );
  metrics.gauge(
    { name: "gateway.backlog", unit: "By", description: "Response bytes buffered because clients have not read them" },
    () => singlePoint(gateway.load.backlogBytes),
  );
  metrics.observedCounter(
    {
      name: "gateway.bad_requests",
      unit: "{request}",
      description: "Requests rejected because they are not valid HTTP",
    },
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
      description: "HTTP/2 streams refused or reset because of client errors, and connections closed with an error",
    },
    () => (["connection", "stream"] as const).flatMap((scope) => http2Errors(scope, gateway.load.http2Errors[scope])),
  );
}

function http2Errors(scope: string, counts: ReadonlyMap<string, number>): readonly NumberPoint[] {
  return [...counts].map(([code, value]) => ({ attributes: { scope, code }, value }));
}

/** Adds gauges for whether the last reload of each file succeeded, and for the time of the last success. */
export function measureFiles(metrics: Metrics, files: readonly MeasuredFile[]): void {
  const reloads = () => files.map((file) => ({ attributes: { "file.path": file.path }, reload: file }));
  addReloadGauges(metrics, "gateway.file.reload", "a file", reloads);
}

/** Adds the reload gauges, whose names begin with `prefix`. @param what - describes what is reloaded */
export function addReloadGauges(
  metrics: Metrics,
  prefix: string,
  what: string,
  read: () => readonly { readonly attributes: Attributes; readonly reload: MeasuredReload }[],
): void {
  const description = `1 if the last reload of ${what} succeeded and its content is still valid, else 0`;
  metrics.gauge({ name: `${prefix}.successful`, unit: "", description }, () =>
    read().map(({ attributes, reload }) => ({ attributes, value: reload.problem === undefined ? 1 : 0 })),
  );
  metrics.gauge(
    {
      name: `${prefix}.last_success`,
      unit: "s",
      description: `Unix time of the last successful reload of ${what}`,
    },
    () =>
      read().flatMap(({ attributes, reload: { lastSuccessMs } }) =>
        lastSuccessMs === undefined ? [] : [{ attributes, value: lastSuccessMs / 1_000 }],
      ),
  );
}

/** Adds gauges for whether the server is ready, and whether it is draining. */
export function measureReadiness(metrics: Metrics, readiness: MeasuredReadiness): void {
  metrics.gauge({ name: "gateway.ready", unit: "", description: "1 while the server is ready, else 0" }, () =>
    singlePoint(readiness.obstacles().length === 0 ? 1 : 0),
  );
  metrics.gauge({ name: "gateway.draining", unit: "", description: "1 while the server shuts down, else 0" }, () =>
    singlePoint(readiness.draining.aborted ? 1 : 0),
  );
}

function byVersion({ http1, http2 }: Readonly<Record<"http1" | "http2", number>>): readonly NumberPoint[] {
  return [
    { attributes: { "network.protocol.version": "1.1" }, value: http1 },
    { attributes: { "network.protocol.version": "2" }, value: http2 },
  ];
}
