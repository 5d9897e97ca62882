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
 * @param get - reads a header field by its lower-case name; `null` when it was not sent
 * @returns the timeout, or an `InvalidArgument` that names the field which is none
 */
export function readRestTimeout(get: (name: string) => string | null): RestTimeout {
  let shortest: number | undefined;
  for (const [name, parse] of fields) {
    const text = get(name);
    if (text === null) continue;
    const timeoutMs = parse(text);
    if (timeoutMs === undefined) {
      return {
        error: new ConnectError(`${name}: ${JSON.stringify(text.slice(0, 32))} is no timeout`, Code.InvalidArgument),
      };
    }
    shortest = Math.min(shortest ?? Number.POSITIVE_INFINITY, timeoutMs);
  }
  return shortest === undefined ? noTimeout : { timeoutMs: shortest };
}

const fields: readonly (readonly [name: string, parse: (text: string) => number | undefined])[] = [
  ["connect-timeout-ms", (text) => (milliseconds.test(text) ? Number(text) : undefined)],
  ["grpc-timeout", parseGrpcTimeout],
  ["x-server-timeout", (text) => (seconds.test(text) ? Math.ceil(Number(text) * 1000) : undefined)],
];

function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit = ""] = digitsAndUnit.exec(text) ?? [];
  // Less than a millisecond still is some time.
  return digits === undefined ? undefined : Math.ceil(Number(digits) * (unitMs[unit] ?? 0));
}
