import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { reasonPhraseOf } from "../../../http/index.ts";

/**
 * The error formats on REST:
 *
 * - `"status"`: google.rpc.Status as JSON, with the code's name
 * - `"google"`: the format of Google's APIs (AIP-193): `{"error":{"code":404,"message":…,"status":"NOT_FOUND"}}`
 * - `"problem"`: problem details (RFC 9457), as `application/problem+json`
 */
export type ErrorForm = "status" | "google" | "problem";

/** The error properties that an error format uses. The names are the placeholders in an `ErrorBody`. */
export interface ErrorParts {
  /** The code's name in google/rpc/code.proto. */
  readonly code: string;
  readonly number: number;
  readonly httpStatus: number;
  readonly message: string;
  /** The error details. Each detail is a google.protobuf.Any in JSON. */
  readonly details: JsonObject[];
}

interface ErrorFormat {
  /** The errors' content type, or `undefined` for the same content type as other JSON responses. */
  readonly contentType: string | undefined;
  toJson(parts: ErrorParts): JsonObject;
}

/** The error formats by name. */
export const errorFormats: Readonly<Record<ErrorForm, ErrorFormat>> = {
  status: {
    contentType: undefined,
    toJson: ({ code, number, message, details }) => ({ code: number, status: code, message, details }),
  },
  google: {
    contentType: undefined,
    toJson: ({ code, httpStatus, message, details }) => ({
      error: { code: httpStatus, message, status: code, ...detailsMember(details) },
    }),
  },
  problem: {
    contentType: "application/problem+json",
    // With the type "about:blank", the title is the status's reason phrase (RFC 9457 §4.2.1). `code` and `details` are
    // extensions.
    toJson: ({ code, httpStatus, message, details }) => ({
      type: "about:blank",
      ...titleOf(httpStatus),
      status: httpStatus,
      detail: message,
      code,
      ...detailsMember(details),
    }),
  },
};

function detailsMember(details: JsonObject[]): { readonly details?: JsonValue } {
  return details.length === 0 ? {} : { details };
}

function titleOf(httpStatus: number): { readonly title?: string } {
  const title = reasonPhraseOf(httpStatus);
  return title === undefined ? {} : { title };
}
