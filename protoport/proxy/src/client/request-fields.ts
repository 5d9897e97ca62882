import { Code, ConnectError } from "@connectrpc/connect";
import { noBytes, fieldsSetByGrpcClient, copyIfPooled } from "@protoport/gateway/exchange";
import { encodeVarying } from "@protoport/gateway/http2-client";
import { formatGrpcTimeout } from "@protoport/gateway/messages";

/** Header fields in any type that `new Headers()` accepts. */
export type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** The fields that a caller added to one call. */
export interface RequestFields {
  /** Names in lower case, alternating with values. */
  readonly fields: readonly string[];
  /** Whether the fields include `user-agent`. */
  readonly hasUserAgent: boolean;
  /** Whether several calls share the fields, so that {@link block} is cached. */
  isShared?: boolean;
  /** The encoded field block. */
  block?: Uint8Array;
}

/** No fields. Most calls add none. */
export const noFields: RequestFields = { fields: [], hasUserAgent: false };

/** Returns the caller's header fields, without the fields that gRPC sets. */
export function readRequestFields(header: HeadersInit | undefined): RequestFields {
  if (header === undefined) return noFields;
  const fields: string[] = [];
  let hasUserAgent = false;
  for (const [name, value] of header instanceof Headers ? header : new Headers(header)) {
    // `grpc-trace-bin`, OpenCensus's trace context, is metadata.
    const isReserved = name.startsWith("grpc-") && name !== "grpc-trace-bin";
    if (fieldsSetByGrpcClient.has(name) || isReserved) continue;
    if (name === "user-agent") hasUserAgent = true;
    fields.push(name, value);
  }
  return { fields, hasUserAgent };
}

/**
 * Encodes a call's fields, its deadline, and how many attempts were made before (gRFC A6).
 *
 * @throws ConnectError `InvalidArgument` if HTTP does not allow a field
 */
export function encodeRequestFields(
  request: RequestFields,
  timeoutMs: number | undefined,
  attemptsBefore: number,
): Uint8Array {
  try {
    const timeout = timeoutMs === undefined ? noBytes : timeoutBlock(timeoutMs);
    if (request.fields.length === 0 && attemptsBefore === 0) return timeout;
    const block = fieldsBlock(request, attemptsBefore);
    return timeoutMs === undefined ? block : Buffer.concat([block, timeout]);
  } catch (error) {
    throw new ConnectError("a header field is not valid", Code.InvalidArgument, undefined, undefined, error);
  }
}

function fieldsBlock(request: RequestFields, attemptsBefore: number): Uint8Array {
  const { fields } = request;
  if (attemptsBefore > 0) return encodeVarying([...fields, "grpc-previous-rpc-attempts", String(attemptsBefore)]);
  // equivalent mutant: the cached block equals a new block.
  return request.isShared === true ? (request.block ??= copyIfPooled(encodeVarying(fields))) : encodeVarying(fields);
}

/** Cached timeout encodings. Most programs use few different timeouts. */
const timeoutBlocks = new Map<number, Uint8Array>();
/** Maximum entries in {@link timeoutBlocks}. */
const maxTimeoutBlocks = 64;

function timeoutBlock(timeoutMs: number): Uint8Array {
  const cached = timeoutBlocks.get(timeoutMs);
  if (cached !== undefined) return cached;
  if (timeoutBlocks.size >= maxTimeoutBlocks) timeoutBlocks.clear();
  const block = encodeVarying(["grpc-timeout", formatGrpcTimeout(timeoutMs)]);
  // equivalent mutant: without the cache, each call encodes its timeout.
  timeoutBlocks.set(timeoutMs, block);
  return block;
}
