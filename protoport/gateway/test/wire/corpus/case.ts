import type { JsonValue } from "@bufbuild/protobuf";
import type { Field } from "../../../../testing/src/http/exchange.ts";

/** One request to the kitchen sink, and the response that a specification requires. */
export interface Case {
  /** The rule that determines the response, by document and section. */
  readonly rule: string;
  /** The method and the request target. */
  readonly request: string;
  readonly body?: string | Uint8Array;
  /** The content type. Defaults to `application/json` for a request with a body. */
  readonly contentType?: string | null;
  readonly header?: readonly Field[];
  readonly want: Want;
  /** The only HTTP version that supports the request. Default: both. Node's HTTP/1.1 parser refuses unknown methods. */
  readonly only?: "HTTP/2";
}

/** The expected response. */
type Header = Readonly<Record<string, string>>;

export type Want =
  /** The status is 200, and the handler for this RPC got this message. */
  | { readonly rpc: string; readonly sink: JsonValue }
  /** This status and exactly this JSON, or no body. */
  | { readonly httpStatus: number; readonly json: JsonValue | undefined; readonly header?: Header }
  /** An error with this status whose message contains this text. */
  | { readonly httpStatus: number; readonly code: number; readonly message: string; readonly header?: Header };

/** The documents that test cases cite. */
export const http = "google/api/http.proto";
export const json = "proto3 JSON mapping";

/** Returns what is expected for an invalid request: 400, INVALID_ARGUMENT. */
export const invalid = (message: string): Want => ({ httpStatus: 400, code: 3, message });

/** The error for a path that no rule matches. */
export const notFound: Want = { httpStatus: 404, code: 5, message: "" };

/** Returns the error for a path whose rules do not include the method. */
export function methodNotAllowed(allow: string): Want {
  return { httpStatus: 405, code: 12, message: "", header: { allow } };
}

/** The error for an HTTP method that no rule on the server has. */
export const methodUnknown: Want = { httpStatus: 501, code: 12, message: "" };

/** Returns what is expected for an unsupported content type. */
export function unsupportedMediaType(contentType: string, hint = ""): Want {
  const message = `the content type must be application/json in UTF-8, got ${JSON.stringify(contentType)}${hint}`;
  return { httpStatus: 415, code: 3, message };
}
