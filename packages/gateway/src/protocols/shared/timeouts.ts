import type { ConnectError } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { problem } from "../../errors/index.ts";
import type { CommonHeaderFields } from "../../exchange/index.ts";

/** The deadline of a request: milliseconds from now, a mistake (`InvalidArgument`), or nothing. */
export interface Timeout {
  readonly timeoutMs?: number | undefined;
  readonly error?: ConnectError | undefined;
}

/** Characters of a time-out that an error repeats: of Connect it has 10 digits at most, of gRPC 8 and a unit. */
const charactersMax = 32;

/** The deadline of a request that sets none, as most do. */
export const noTimeout: Timeout = {};

/** Reads `Connect-Timeout-Ms`. */
export function readConnectTimeout({ connectTimeoutMs }: CommonHeaderFields, maxTimeoutMs: number): Timeout {
  return withErrorCode(parseConnectTimeout(connectTimeoutMs?.slice(0, charactersMax) ?? null, maxTimeoutMs));
}

/** Reads `Grpc-Timeout`. */
export function readGrpcTimeout({ grpcTimeout }: CommonHeaderFields, maxTimeoutMs: number): Timeout {
  return withErrorCode(parseGrpcTimeout(grpcTimeout?.slice(0, charactersMax) ?? null, maxTimeoutMs));
}

/** Gives the error of Connect's parsers its identifier. */
function withErrorCode(timeout: Timeout): Timeout {
  if (timeout.error === undefined) return timeout;
  return { ...timeout, error: problem("ERR_TIMEOUT_INVALID", timeout.error.rawMessage) };
}

/**
 * Reads the deadline of a REST request from the fields that other protocols and proxies use: `Connect-Timeout-Ms`,
 * `Grpc-Timeout` and `X-Server-Timeout`. The shortest counts, because its sender waits no longer. A timeout of zero has
 * already passed.
 */
export function readRestTimeout(common: CommonHeaderFields, maxTimeoutMs: number): Timeout {
  const { connectTimeoutMs, grpcTimeout, xServerTimeout } = common;
  // Most requests have none.
  if (connectTimeoutMs === null && grpcTimeout === null && xServerTimeout === null) return noTimeout;
  const timeouts = [
    readConnectTimeout(common, Number.POSITIVE_INFINITY),
    readGrpcTimeout(common, Number.POSITIVE_INFINITY),
    readServerTimeout(xServerTimeout),
  ];
  const mistaken = timeouts.find(({ error }) => error !== undefined);
  if (mistaken !== undefined) return mistaken;
  const timeoutMs = Math.min(...timeouts.map((timeout) => timeout.timeoutMs ?? Number.POSITIVE_INFINITY));
  if (timeoutMs <= maxTimeoutMs) return { timeoutMs };
  return {
    timeoutMs,
    error: problem("ERR_TIMEOUT_INVALID", `timeout ${timeoutMs}ms must be <= ${maxTimeoutMs}`),
  };
}

// Seconds, with a fraction. As many digits as gRPC has, down to microseconds.
const seconds = /^[0-9]{1,8}(?:\.[0-9]{1,6})?$/;

/** Reads `X-Server-Timeout`, which Google's REST services take. */
function readServerTimeout(text: string | null): Timeout {
  if (text === null) return noTimeout;
  if (seconds.test(text)) return { timeoutMs: Number(text) * 1000 };
  const message = `protocol error: invalid server timeout value: ${text.slice(0, charactersMax)}`;
  return { error: problem("ERR_TIMEOUT_INVALID", message) };
}
