import type { JsonObject, JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { create, fromBinary, toJson } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { RestResponse } from "./response-body.ts";

/** What is known of a request that fails, beside the error. */
export interface RestFailure {
  /** The standard status of the failure: of its code, or what HTTP says of the request (405, 413, 431). */
  readonly httpStatus: number;
  /** `/package.Service/Method` of the RPC that matched, or `undefined` when nothing did. */
  readonly procedure: string | undefined;
}

/** An error's answer on REST. */
export interface ErrorRecord {
  readonly httpStatus: number;
  /** The JSON of the body. */
  readonly body: JsonValue;
  /** Default `application/json`. */
  readonly contentType?: string;
}

/** Decides what an error looks like on REST, from whatever layer it comes. */
export type ErrorRecordPolicy = (error: ConnectError, failure: RestFailure) => ErrorRecord;

const utf8 = new TextEncoder();

/** Makes the answer of an error on REST. Headers that the error carries as metadata are not part of it. */
export function errorToRest(error: ConnectError, failure: RestFailure, policy: ErrorRecordPolicy): RestResponse {
  const { httpStatus, body, contentType } = policy(error, failure);
  return { httpStatus, contentType: contentType ?? "application/json", body: utf8.encode(JSON.stringify(body)) };
}

/**
 * The policy of the library: google.rpc.Status as JSON, with the code's name beside its number, under the
 * failure's standard status.
 *
 * @param registry - the types of error details that arrive as bytes, from an upstream service
 */
export function createStatusRecord(registry?: Registry): ErrorRecordPolicy {
  return (error, failure) => ({
    httpStatus: failure.httpStatus,
    body: {
      code: error.code,
      status: codeNames[error.code],
      message: error.rawMessage,
      details: error.details.map((detail) => detailToJson(detail, registry)),
    },
  });
}

// The names of google/rpc/code.proto.
const codeNames: Readonly<Record<Code, string>> = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

type Detail = ConnectError["details"][number];

// As a google.protobuf.Any in JSON. A detail nobody here knows keeps its bytes, so that nothing is lost.
function detailToJson(detail: Detail, registry: Registry | undefined): JsonObject {
  if ("desc" in detail) return anyToJson(detail.desc, create(detail.desc, detail.value), registry);
  const desc = registry?.getMessage(detail.type);
  if (desc !== undefined) {
    try {
      return anyToJson(desc, fromBinary(desc, detail.value), registry);
    } catch {
      // The bytes are not of that type: they are passed on as they came.
    }
  }
  return { "@type": typeUrl(detail.type), value: Buffer.from(detail.value).toString("base64") };
}

function anyToJson(desc: Parameters<typeof toJson>[0], message: Message, registry: Registry | undefined): JsonObject {
  const json = toJson(desc, message, registry === undefined ? {} : { registry });
  const type = { "@type": typeUrl(desc.typeName) };
  const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
  return isObject && !hasCustomJsonRepresentation(desc) ? { ...type, ...json } : { ...type, value: json };
}

function typeUrl(typeName: string): string {
  return `type.googleapis.com/${typeName}`;
}
