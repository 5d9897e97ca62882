/**
 * Reads errors from responses. The known formats are `application/problem+json`, and error records from grpc-gateway,
 * Envoy, Google's APIs, Connect and this gateway. For other bodies, the HTTP status determines the error.
 */
import type { JsonObject, JsonValue, Registry } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { findField, readJsonExactly } from "@protoport/gateway/messages";
import { codeNames } from "@protoport/gateway/rest";

/**
 * Returns the error for an error body. If the function returns `undefined`, the body is read as one of the known
 * formats.
 */
export type ReadErrorBody = (body: JsonValue, httpStatus: number) => ConnectError | undefined;

/** Options for reading errors. */
export interface ErrorStyle {
  readonly readErrorBody: ReadErrorBody | undefined;
  /**
   * The types of error details that are decoded from JSON. Details with other types are dropped, unless a detail is
   * sent as bytes.
   */
  readonly registry: Registry;
}

/**
 * Returns a response error.
 *
 * @param record - the response body, or `undefined` if the body is not JSON
 * @param httpStatus - the response status, or 200 for an error that ends a stream
 * @param header - the response header, which becomes the metadata of the error
 */
export function readResponseError(
  record: JsonValue | undefined,
  httpStatus: number,
  header: Headers,
  { readErrorBody, registry }: ErrorStyle,
): ConnectError {
  const customError = record === undefined ? undefined : readErrorBody?.(record, httpStatus);
  if (customError !== undefined) return customError;
  const standard = codeOfRestStatus(httpStatus);
  // In streams from Google's APIs, the error record is in an array.
  const [outer] = Array.isArray(record) ? record : [record];
  const found = isObject(outer) ? readRecord(outer, registry) : undefined;
  const message = found?.message ?? `HTTP status ${httpStatus}`;
  const error = new ConnectError(message, found?.code ?? standard, header);
  error.details.push(...(found?.details ?? []));
  // `isWireError` marks an error from another server, so that Connect does not forward the error's metadata.
  return Object.assign(error, { isWireError: true });
}

interface RecordFound {
  readonly code: Code | undefined;
  readonly message: string | undefined;
  readonly details: ConnectError["details"];
}

function readRecord(outer: JsonObject, registry: Registry): RecordFound {
  // Google's APIs and grpc-gateway streams send the error record as the member `error`.
  const record = isObject(outer["error"]) ? outer["error"] : outer;
  const { details = [] } = record;
  const texts = [record["message"], record["detail"], record["title"], record["error"]];
  return {
    code: codeOfError(record),
    message: texts.find((text): text is string => typeof text === "string"),
    details: Array.isArray(details) ? details.flatMap((detail) => toDetail(detail, registry)) : [],
  };
}

const codesByName = new Map(Object.entries(codeNames).map(([number, name]) => [name, Number(number)]));

/** Returns the code in an error record. A number above the gRPC codes is an HTTP status, which Google's APIs send. */
function codeOfError({ status, code, grpc_code: grpcCode, error }: JsonObject): Code | undefined {
  const codeByName = typeof code === "string" ? (codeFromString(code) ?? codesByName.get(code)) : undefined;
  const namedCode = codeByName ?? (typeof status === "string" ? codesByName.get(status) : undefined);
  return [namedCode, code, grpcCode, error].find((each): each is Code => typeof each === "number" && each in Code);
}

function toDetail(detail: JsonValue, registry: Registry): ConnectError["details"] {
  if (!isObject(detail)) return [];
  const { type, value, "@type": url } = detail;
  try {
    if (typeof type === "string" && typeof value === "string") return [{ type, value: base64Decode(value) }];
    if (typeof url !== "string") return [];
    const name = url.slice(url.lastIndexOf("/") + 1);
    const desc = registry.getMessage(name);
    // This project's gateway sends a detail as bytes if the type is unknown or the detail cannot be decoded.
    const hasBytes =
      typeof value === "string" && Object.keys(detail).length === 2 && !name.startsWith("google.protobuf.");
    const isField = desc !== undefined && findField(desc, "value") !== undefined;
    if (hasBytes && !isField) return [{ type: name, value: base64Decode(value) }];
    if (desc === undefined) return [];
    const options = { registry, unknownFields: "ignore" } as const;
    const anyMessage = readJsonExactly(AnySchema, undefined, JSON.stringify(detail), options);
    return [{ type: name, value: anyMessage.value, debug: detail }];
  } catch {
    // Drops an invalid detail, because an error about the detail would hide the server's error.
    return [];
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Inverts the mapping in google/rpc/code.proto. If several codes have the status, returns the most general one.
function codeOfRestStatus(httpStatus: number): Code {
  const codeOfStatus = codesByStatus.get(httpStatus);
  if (codeOfStatus !== undefined) return codeOfStatus;
  if (httpStatus >= 500) return Code.Internal;
  return httpStatus >= 400 ? Code.FailedPrecondition : Code.Unknown;
}

const codesByStatus: ReadonlyMap<number, Code> = new Map([
  [400, Code.InvalidArgument],
  [401, Code.Unauthenticated],
  [403, Code.PermissionDenied],
  [404, Code.NotFound],
  [405, Code.Unimplemented],
  [408, Code.DeadlineExceeded],
  [409, Code.Aborted],
  [413, Code.ResourceExhausted],
  [414, Code.ResourceExhausted],
  [415, Code.InvalidArgument],
  [416, Code.OutOfRange],
  [422, Code.InvalidArgument],
  [429, Code.ResourceExhausted],
  [431, Code.ResourceExhausted],
  [499, Code.Canceled],
  [500, Code.Unknown],
  [501, Code.Unimplemented],
  [502, Code.Unavailable],
  [503, Code.Unavailable],
  [504, Code.DeadlineExceeded],
]);
