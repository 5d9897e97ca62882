import type { Readiness } from "./readiness.ts";

/** An endpoint beside the RPCs, answered to GET and HEAD; the gateway's `Endpoint` by structure. */
export interface ProbeEndpoint {
  readonly path: string;
  /** Probes of load balancers and orchestrators cannot send a credential. */
  readonly open: true;
  readonly answer: () => {
    readonly httpStatus: number;
    readonly header: Record<string, string>;
    readonly body: string;
  };
}

// A cached answer of a probe is a wrong answer (RFC 9111 §5.2.2.5).
const header: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };

/**
 * Returns the probes: `/livez` answers 200 as long as the process answers at all; `/readyz` answers
 * 200 when calls may be sent here, else 503 naming what is in the way. `/healthz` is `/readyz` for
 * platforms that know a single path.
 */
export function probes(readiness: Readiness): ProbeEndpoint[] {
  const live = JSON.stringify({ status: "live" });
  const answerReady: ProbeEndpoint["answer"] = () => {
    const obstacles = readiness.obstacles();
    if (obstacles.length === 0) return { httpStatus: 200, header, body: JSON.stringify({ status: "ready" }) };
    return { httpStatus: 503, header, body: JSON.stringify({ status: "not ready", obstacles }) };
  };
  return [
    { path: "/livez", open: true, answer: () => ({ httpStatus: 200, header, body: live }) },
    { path: "/readyz", open: true, answer: answerReady },
    { path: "/healthz", open: true, answer: answerReady },
  ];
}
