import { Code, ConnectError } from "@connectrpc/connect";

/** What a request says about its deadline: milliseconds from now, a mistake, or nothing. */
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
 * Reads the deadline of a REST request out of the fields that other protocols and proxies have for it:
 * `Connect-Timeout-Ms`, `Grpc-Timeout` and `X-Server-Timeout`. Of several the shortest counts: each is a
 * time after which nobody waits any more. Zero has passed already.
 *
 * @param header - a field that was not sent is `null`
 * @returns the timeout, or an `InvalidArgument` that names the field which is none
 */
export function readRestTimeout(header: { get(name: string): string | null }): RestTimeout {
  const connect = header.get("connect-timeout-ms");
  const grpc = header.get("grpc-timeout");
  const server = header.get("x-server-timeout");
  // Most requests name none.
  if (connect === null && grpc === null && server === null) return noTimeout;
  return shortest(
    parseField("connect-timeout-ms", connect, parseMilliseconds),
    parseField("grpc-timeout", grpc, parseGrpcTimeout),
    parseField("x-server-timeout", server, parseSeconds),
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
  // Less than a millisecond still is some time.
  return digits === undefined ? undefined : Math.ceil(Number(digits) * (unitMs[unit] ?? 0));
}
