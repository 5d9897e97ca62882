import type { CompletedRequest, Endpoint } from "../serve/index.ts";
import { Health } from "../protobuf/gen/grpc/health/v1/health_pb.ts";
import type { Readiness } from "./readiness.ts";

const [livePath, readyPath, healthPath] = ["/livez", "/readyz", "/healthz"] as const;
const paths: ReadonlySet<string> = new Set([livePath, readyPath, healthPath]);

/**
 * Returns whether a request was a probe, which is a grpc.health.v1 call or a request to a {@link createProbes}
 * endpoint.
 *
 * @param prefix - the gateway's `requestPathPrefix`
 */
export function isProbe(
  { procedure, httpRoute = "" }: Pick<CompletedRequest, "procedure" | "httpRoute">,
  prefix: string = "",
): boolean {
  if (procedure !== undefined) return procedure.startsWith(`/${Health.typeName}/`);
  return httpRoute.startsWith(prefix) && paths.has(httpRoute.slice(prefix.length));
}

// Probe responses must not be stored in caches, because a stored response would be out of date (RFC 9111 §5.2.2.5).
const header = { "content-type": "application/json", "cache-control": "no-store" };

/**
 * Creates the endpoints for probes. `/livez` returns 200 as long as the process responds. `/readyz` returns 200 while
 * the server accepts calls, or otherwise 503 with the reasons as `obstacles`. The member `degraded` lists failed
 * optional parts. `/healthz` is the same as `/readyz`, for platforms that support only one path.
 */
export function createProbes(readiness: Readiness): Endpoint[] {
  const livezBody = JSON.stringify({ status: "live" });
  const respondReady: Endpoint["handle"] = () => {
    const obstacles = readiness.obstacles();
    const names = readiness.degraded();
    const degraded = names.length === 0 ? {} : { degraded: names };
    if (obstacles.length === 0) {
      return { httpStatus: 200, header, body: JSON.stringify({ status: "ready", ...degraded }) };
    }
    return { httpStatus: 503, header, body: JSON.stringify({ status: "not ready", obstacles, ...degraded }) };
  };
  // The probes are open because load balancers and orchestrators cannot send a credential.
  return [
    { path: livePath, open: true, handle: () => ({ httpStatus: 200, header, body: livezBody }) },
    { path: readyPath, open: true, handle: respondReady },
    { path: healthPath, open: true, handle: respondReady },
  ];
}
