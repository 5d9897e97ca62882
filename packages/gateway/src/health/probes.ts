import type { AnsweredRequest, Endpoint } from "../serve/index.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import type { Readiness } from "./readiness.ts";

const [livePath, readyPath, healthPath] = ["/livez", "/readyz", "/healthz"] as const;
const paths: ReadonlySet<string> = new Set([livePath, readyPath, healthPath]);

/**
 * Returns whether a request was a probe: one of {@link createProbes}, or of grpc.health.v1.
 *
 * @param prefix - the `requestPathPrefix` of the gateway
 */
export function isProbe(
  { procedure, httpRoute = "" }: Pick<AnsweredRequest, "procedure" | "httpRoute">,
  prefix: string = "",
): boolean {
  if (procedure !== undefined) return procedure.startsWith(`/${Health.typeName}/`);
  return httpRoute.startsWith(prefix) && paths.has(httpRoute.slice(prefix.length));
}

// A cached response of a probe would be wrong (RFC 9111 §5.2.2.5).
const header = { "content-type": "application/json", "cache-control": "no-store" };

/**
 * Creates the probes. `/livez` answers 200 as long as the process can answer; `/readyz` answers 200 while calls may be
 * sent here, else 503 with the obstacles; both name optional parts that cannot serve as `degraded`. `/healthz` is the same as `/readyz`, for platforms that know only one path.
 */
export function createProbes(readiness: Readiness): Endpoint[] {
  const live = JSON.stringify({ status: "live" });
  const answerReady: Endpoint["answer"] = () => {
    const obstacles = readiness.obstacles();
    const names = readiness.degraded();
    const degraded = names.length === 0 ? {} : { degraded: names };
    if (obstacles.length === 0) {
      return { httpStatus: 200, header, body: JSON.stringify({ status: "ready", ...degraded }) };
    }
    return { httpStatus: 503, header, body: JSON.stringify({ status: "not ready", obstacles, ...degraded }) };
  };
  // Load balancers and orchestrators cannot send a credential.
  return [
    { path: livePath, open: true, answer: () => ({ httpStatus: 200, header, body: live }) },
    { path: readyPath, open: true, answer: answerReady },
    { path: healthPath, open: true, answer: answerReady },
  ];
}
