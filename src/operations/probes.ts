import type { Endpoint } from "../gateway/index.ts";
import type { Readiness } from "./readiness.ts";

// A cached response of a probe would be wrong (RFC 9111 §5.2.2.5).
const header = { "content-type": "application/json", "cache-control": "no-store" };

/**
 * Creates the probes. `/livez` answers 200 as long as the process can answer; `/readyz` answers 200 while calls may be
 * sent here, else 503 with the obstacles. `/healthz` is the same as `/readyz`, for platforms that know only one path.
 */
export function createProbes(readiness: Readiness): Endpoint[] {
  const live = JSON.stringify({ status: "live" });
  const answerReady: Endpoint["answer"] = () => {
    const obstacles = readiness.obstacles();
    if (obstacles.length === 0) return { httpStatus: 200, header, body: JSON.stringify({ status: "ready" }) };
    return { httpStatus: 503, header, body: JSON.stringify({ status: "not ready", obstacles }) };
  };
  // Load balancers and orchestrators cannot send a credential.
  return [
    { path: "/livez", open: true, answer: () => ({ httpStatus: 200, header, body: live }) },
    { path: "/readyz", open: true, answer: answerReady },
    { path: "/healthz", open: true, answer: answerReady },
  ];
}
