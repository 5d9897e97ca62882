import { Code, ConnectError } from "@connectrpc/connect";
import { noBytes, setByGrpcClient, unpooled } from "@plantstore/gateway/exchange";
import { encodeVarying } from "@plantstore/http-engine/client";
import { formatGrpcTimeout } from "@plantstore/gateway/internal/protocols";

/** Fields in the forms of which `Headers` can be made. */
export type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** The fields that a caller has added to one call. */
export interface RequestFields {
  /** Name, value, …, in lower case. */
  readonly fields: readonly string[];
  /** Whether `user-agent` is among them. */
  readonly namesProgram: boolean;
  /** Whether they are those of several calls, and then what they were encoded to. */
  isShared?: boolean;
  block?: Uint8Array;
}

/** The fields of most calls. */
export const noFields: RequestFields = { fields: [], namesProgram: false };

/** Returns the fields of a call without those that the protocol sets itself. */
export function readRequestFields(header: HeadersInit | undefined): RequestFields {
  if (header === undefined) return noFields;
  const fields: string[] = [];
  let namesProgram = false;
  for (const [name, value] of header instanceof Headers ? header : new Headers(header)) {
    if (setByGrpcClient.has(name) || name.startsWith("grpc-")) continue;
    if (name === "user-agent") namesProgram = true;
    fields.push(name, value);
  }
  return { fields, namesProgram };
}

/**
 * Encodes the fields of a call, its deadline, and how often it was sent before (gRFC A6).
 *
 * @throws ConnectError `InvalidArgument` for a field that HTTP does not allow
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
    throw new ConnectError("a header field is not allowed", Code.InvalidArgument, undefined, undefined, error);
  }
}

function fieldsBlock(request: RequestFields, attemptsBefore: number): Uint8Array {
  const { fields } = request;
  if (attemptsBefore > 0) return encodeVarying([...fields, "grpc-previous-rpc-attempts", String(attemptsBefore)]);
  // No test can tell: a block that is kept equals the one that this call would make.
  return request.isShared === true ? (request.block ??= unpooled(encodeVarying(fields))) : encodeVarying(fields);
}

/** Deadlines that were encoded, as programs have few of them. */
const timeoutBlocks = new Map<number, Uint8Array>();
/** How many are kept: more than a program has, and few enough to cost nothing. */
const timeoutBlocksMax = 64;

function timeoutBlock(timeoutMs: number): Uint8Array {
  const known = timeoutBlocks.get(timeoutMs);
  if (known !== undefined) return known;
  if (timeoutBlocks.size >= timeoutBlocksMax) timeoutBlocks.clear();
  const block = encodeVarying(["grpc-timeout", formatGrpcTimeout(timeoutMs)]);
  // No test can tell: it would be encoded again.
  timeoutBlocks.set(timeoutMs, block);
  return block;
}
