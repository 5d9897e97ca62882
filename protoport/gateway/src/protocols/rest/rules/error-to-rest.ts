import type { JsonObject, JsonValue, Registry } from "@bufbuild/protobuf";
import { create, createRegistry, fromBinary } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { refusePromise, requireField, toUtf8, withCode } from "../../../http/index.ts";
import { problemStatusOf, anyToJson, type JsonStyle } from "../../../protobuf/index.ts";
import { file_google_rpc_error_details } from "../../../protobuf/gen/google/rpc/error_details_pb.ts";
import { type ErrorBody, fillErrorBody } from "./error-body.ts";
import { type ErrorForm, errorFormats, type ErrorParts } from "./error-forms.ts";

/** A failed request's properties in addition to the error. */
export interface RestFailure {
  /** The response's default HTTP status. The handler, the error or HTTP (405, 413, 431) determines the status. */
  readonly httpStatus: number;
  /** `/package.Service/Method` of the RPC that matched, or `undefined` if none matched. */
  readonly procedure: string | undefined;
}

/** The response to a failed request, as returned by a policy. */
export interface ErrorRecord {
  readonly httpStatus: number;
  readonly body: JsonValue;
  /** Default: the content type for JSON responses, which is `contentType` in `rest`. */
  readonly contentType?: string;
}

/** Returns the REST response for an error from any layer. */
export type ErrorRecordPolicy = (error: ConnectError, failure: RestFailure) => ErrorRecord;

/** The response to a failed request, without the error metadata. */
export interface ErrorResponse {
  readonly httpStatus: number;
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** Writes the response to a failed request. */
export interface ErrorRecordWriter {
  (error: ConnectError, failure: RestFailure): ErrorResponse;
  /** Whether errors are google.rpc.Status. */
  readonly isStatus: boolean;
}

/**
 * Returns the types that error details may have, which are the types in `registry` and in
 * google/rpc/error_details.proto. Services can send the types in error_details.proto without importing that file.
 */
export function withDetailTypes(registry: Registry = createRegistry()): Registry {
  return createRegistry(file_google_rpc_error_details, registry);
}

/** The error format, and the content type for formats that define none. */
interface ErrorBodyStyle {
  readonly form: ErrorForm;
  /** The template that replaces the JSON of the format, or `undefined`. */
  readonly template?: ErrorBody | undefined;
  readonly contentType: string;
}

/**
 * Creates a gateway's error writer.
 *
 * @param policy - replaces the form. If the policy fails, the response is the default record of an internal error. The
 * default record of the original error could reveal what the policy hides.
 * @param registry - the types for error details that arrive as bytes from an upstream service, in addition to the types
 * in google/rpc/error_details.proto
 * @param onPolicyFault - called when the policy throws or returns a record that cannot be sent
 */
export function createErrorRecordWriter(
  policy?: ErrorRecordPolicy,
  registry?: Registry,
  { form, template, contentType: jsonType }: ErrorBodyStyle = { form: "status", contentType: "application/json" },
  onPolicyFault: (error: unknown) => void = () => undefined,
): ErrorRecordWriter {
  // No code is generated for error details, because errors with details are rare.
  const options: JsonStyle = { registry: withDetailTypes(registry), codegen: false };
  const { contentType: standardType = jsonType, toJson } = errorFormats[form];
  const toBody = (parts: ErrorParts): JsonObject =>
    template === undefined ? toJson(parts) : fillErrorBody(template, parts);
  const standard: ErrorRecordPolicy = (error, { httpStatus }) => ({
    httpStatus,
    contentType: standardType,
    body: toBody(partsOf(error, httpStatus, options)),
  });
  const write = (error: ConnectError, failure: RestFailure): ErrorResponse => {
    if (policy === undefined) return toResponse(standard(error, failure), jsonType);
    try {
      const record = refusePromise(policy(error, failure), "rest.errorRecord must be synchronous");
      return toResponse(record, jsonType);
    } catch (fault) {
      onPolicyFault(fault);
      const internal = new ConnectError("internal error", Code.Internal);
      return toResponse(standard(internal, { ...failure, httpStatus: 500 }), jsonType);
    }
  };
  return Object.assign(write, { isStatus: policy === undefined && template === undefined && form === "status" });
}

/** Returns a record as a response. @throws TypeError for a value that is not a record, or cannot be sent */
function toResponse(record: Partial<ErrorRecord> | null | undefined, jsonType: string): ErrorResponse {
  const { httpStatus = Number.NaN, body, contentType = jsonType } = record ?? {};
  if (!Number.isInteger(httpStatus) || httpStatus < 200 || httpStatus > 599) {
    throw invalidRecordError("httpStatus must be an integer between 200 and 599", record?.httpStatus);
  }
  const text: string | undefined = JSON.stringify(body);
  if (text === undefined) throw invalidRecordError("body must be JSON", body);
  requireField("content-type", contentType);
  return { httpStatus, contentType, body: toUtf8(text) };
}

function invalidRecordError(requirement: string, got: unknown): TypeError {
  return withCode(new TypeError(`${requirement}, got ${String(got)}`), "ERR_OPTIONS");
}

/** Returns the HTTP status for an error's identifier, or otherwise for the error's code. */
export function httpStatusOf(error: ConnectError): number {
  return problemStatusOf(error) ?? nameAndStatusOf[error.code][1];
}

// The names and HTTP statuses for the codes in google/rpc/code.proto.
const nameAndStatusOf: Readonly<Record<Code, readonly [name: string, httpStatus: number]>> = {
  [Code.Canceled]: ["CANCELLED", 499],
  [Code.Unknown]: ["UNKNOWN", 500],
  [Code.InvalidArgument]: ["INVALID_ARGUMENT", 400],
  [Code.DeadlineExceeded]: ["DEADLINE_EXCEEDED", 504],
  [Code.NotFound]: ["NOT_FOUND", 404],
  [Code.AlreadyExists]: ["ALREADY_EXISTS", 409],
  [Code.PermissionDenied]: ["PERMISSION_DENIED", 403],
  [Code.ResourceExhausted]: ["RESOURCE_EXHAUSTED", 429],
  [Code.FailedPrecondition]: ["FAILED_PRECONDITION", 400],
  [Code.Aborted]: ["ABORTED", 409],
  [Code.OutOfRange]: ["OUT_OF_RANGE", 400],
  [Code.Unimplemented]: ["UNIMPLEMENTED", 501],
  [Code.Internal]: ["INTERNAL", 500],
  [Code.Unavailable]: ["UNAVAILABLE", 503],
  [Code.DataLoss]: ["DATA_LOSS", 500],
  [Code.Unauthenticated]: ["UNAUTHENTICATED", 401],
};

/** The code names, by their numbers. */
export const codeNames: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(nameAndStatusOf).map(([number, [name]]) => [number, name]),
);

function partsOf(error: ConnectError, httpStatus: number, options: JsonStyle): ErrorParts {
  return {
    code: nameAndStatusOf[error.code][0],
    number: error.code,
    httpStatus,
    message: error.rawMessage,
    details: error.details.map((detail) => detailToJson(detail, options)),
  };
}

// A detail with an unknown type keeps its bytes, so that no data is lost.
function detailToJson(detail: ConnectError["details"][number], options: JsonStyle): JsonObject {
  if ("desc" in detail) {
    const { desc, value } = detail;
    return anyToJson(typeUrl(desc.typeName), desc, create(desc, value), options);
  }
  const desc = options.registry?.getMessage(detail.type);
  if (desc !== undefined) {
    try {
      return anyToJson(typeUrl(detail.type), desc, fromBinary(desc, detail.value), options);
    } catch {
      // A detail is passed on unchanged if the bytes are not valid for the type.
    }
  }
  return { "@type": typeUrl(detail.type), value: base64Encode(detail.value) };
}

function typeUrl(typeName: string): string {
  return `type.googleapis.com/${typeName}`;
}
