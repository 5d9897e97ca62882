import { Code, ConnectError } from "@connectrpc/connect";
import type { CommonHeaderFields } from "../../carriers/index.ts";

/** The deadline of a request: milliseconds from now, a mistake, or nothing. */
export interface RestTimeout {
  readonly timeoutMs?: number;
  readonly error?: ConnectError;
}

// Connect protocol: ASCII digits, ten at most.
const milliseconds = /^[0-9]{1,10}$/;
// gRPC over HTTP/2: ASCII digits, eight at most, and a unit.
const digitsAndUnit = /^([0-9]{1,8})([HMSmun])$/;
// X-Server-Timeout: seconds, with a fraction. As many digits as gRPC has, down to microseconds.
const seconds = /^[0-9]{1,8}(?:\.[0-9]{1,6})?$/;

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

const noTimeout: RestTimeout = {};

/**
 * Reads the deadline of a REST request from the fields that other protocols and proxies use: `Connect-Timeout-Ms`,
 * `Grpc-Timeout` and `X-Server-Timeout`. The shortest counts, because its sender waits no longer. A timeout of zero has
 * already passed.
 *
 * @returns the timeout, or an `InvalidArgument` that names the malformed field
 */
export function readRestTimeout({ connectTimeoutMs, grpcTimeout, xServerTimeout }: CommonHeaderFields): RestTimeout {
  // Most requests have none.
  if (connectTimeoutMs === null && grpcTimeout === null && xServerTimeout === null) return noTimeout;
  return shortest(
    parseField("connect-timeout-ms", connectTimeoutMs, parseMilliseconds),
    parseField("grpc-timeout", grpcTimeout, parseGrpcTimeout),
    parseField("x-server-timeout", xServerTimeout, parseSeconds),
  );
}

function shortest(...timeouts: readonly RestTimeout[]): RestTimeout {
  const mistaken = timeouts.find(({ error }) => error !== undefined);
  if (mistaken !== undefined) return mistaken;
  return { timeoutMs: Math.min(...timeouts.map(({ timeoutMs }) => timeoutMs ?? Number.POSITIVE_INFINITY)) };
}

function parseField(name: string, text: string | null, parse: (text: string) => number | undefined): RestTimeout {
  if (text === null) return noTimeout;
  const timeoutMs = parse(text);
  if (timeoutMs !== undefined) return { timeoutMs };
  const message = `${name}: ${JSON.stringify(text.slice(0, 32))} is no timeout`;
  return { error: new ConnectError(message, Code.InvalidArgument) };
}

function parseMilliseconds(text: string): number | undefined {
  return milliseconds.test(text) ? Number(text) : undefined;
}

function parseSeconds(text: string): number | undefined {
  return seconds.test(text) ? Math.ceil(Number(text) * 1000) : undefined;
}

function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit = ""] = digitsAndUnit.exec(text) ?? [];
  // Rounded up, because less than a millisecond is still some time.
  return digits === undefined ? undefined : Math.ceil(Number(digits) * (unitMs[unit] ?? 0));
}
