import type { ConnectError } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import type { HeaderReader } from "../../http/index.ts";
import { problem, type ProblemDetails } from "../../protobuf/index.ts";

/** A request's timeout in milliseconds from now. The error for an invalid timeout is `InvalidArgument`. */
export interface Timeout {
  readonly timeoutMs?: number | undefined;
  readonly error?: ConnectError | undefined;
}

/** Maximum timeout characters that an error quotes. Valid Connect timeouts have up to 10 digits, gRPC timeouts 8. */
const maxCharacters = 32;

const noTimeout: Timeout = {};

/** Returns the option that would allow a timeout, or none if the timeout is malformed. */
function optionFor({ timeoutMs }: Timeout): Pick<ProblemDetails, "option"> {
  return timeoutMs === undefined ? {} : { option: "maxTimeoutMs" };
}

/** Reads the `Connect-Timeout-Ms` value. */
export function readConnectTimeout(text: string | null, maxTimeoutMs: number): Timeout {
  return text === null ? noTimeout : withErrorCode(parseConnectTimeout(text.slice(0, maxCharacters), maxTimeoutMs));
}

/** Reads the `Grpc-Timeout` value. */
export function readGrpcTimeout(text: string | null, maxTimeoutMs: number): Timeout {
  return text === null ? noTimeout : withErrorCode(parseGrpcTimeout(text.slice(0, maxCharacters), maxTimeoutMs));
}

/** Adds the identifier ERR_TIMEOUT_INVALID to an error from Connect's parsers. */
function withErrorCode(timeout: Timeout): Timeout {
  if (timeout.error === undefined) return timeout;
  return { ...timeout, error: problem("ERR_TIMEOUT_INVALID", timeout.error.rawMessage, optionFor(timeout)) };
}

/**
 * Reads a REST request's timeout from `Connect-Timeout-Ms`, `Grpc-Timeout` and `X-Server-Timeout`, which other
 * protocols and proxies define. The shortest timeout applies, because its sender does not wait longer. A zero timeout
 * has already expired.
 */
export function readRestTimeout(header: HeaderReader, maxTimeoutMs: number): Timeout {
  const connectTimeoutMs = header.get("connect-timeout-ms");
  const grpcTimeout = header.get("grpc-timeout");
  const xServerTimeout = header.get("x-server-timeout");
  // Most requests set no timeout.
  if (connectTimeoutMs === null && grpcTimeout === null && xServerTimeout === null) return noTimeout;
  const timeouts = [
    readConnectTimeout(connectTimeoutMs, Number.POSITIVE_INFINITY),
    readGrpcTimeout(grpcTimeout, Number.POSITIVE_INFINITY),
    readServerTimeout(xServerTimeout),
  ];
  const invalid = timeouts.find(({ error }) => error !== undefined);
  if (invalid !== undefined) return invalid;
  const timeoutMs = Math.min(...timeouts.map((timeout) => timeout.timeoutMs ?? Number.POSITIVE_INFINITY));
  if (timeoutMs <= maxTimeoutMs) return { timeoutMs };
  return {
    timeoutMs,
    error: problem(
      "ERR_TIMEOUT_INVALID",
      `timeout ${timeoutMs}ms must be <= ${maxTimeoutMs}`,
      optionFor({ timeoutMs }),
    ),
  };
}

// Matches seconds with up to eight digits, as in gRPC, and an optional fraction down to microseconds.
const seconds = /^[0-9]{1,8}(?:\.[0-9]{1,6})?$/;

/** Reads `X-Server-Timeout`, which Google's REST services accept. */
function readServerTimeout(text: string | null): Timeout {
  if (text === null) return noTimeout;
  if (seconds.test(text)) return { timeoutMs: Number(text) * 1000 };
  const message = `protocol error: invalid server timeout value: ${text.slice(0, maxCharacters)}`;
  return { error: problem("ERR_TIMEOUT_INVALID", message) };
}

/**
 * Formats a timeout for the field `grpc-timeout`, with at most eight digits and a unit (gRPC over HTTP/2, "Timeout").
 * The value is rounded up, because the caller enforces the exact deadline itself.
 */
export function formatGrpcTimeout(timeoutMs: number): string {
  for (const [unit, unitMs] of timeoutUnits) {
    const value = Math.ceil(timeoutMs / unitMs);
    if (value < 1e8) return `${value}${unit}`;
  }
  return "99999999H";
}

const timeoutUnits = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
] as const;
