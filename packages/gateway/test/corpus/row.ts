import type { JsonValue } from "@bufbuild/protobuf";
import type { Field } from "../../../testing/src/carriers/exchange.ts";

/** One request to the kitchen sink and what a specification says of it. */
export interface Row {
  /** The rule that decides, by document and section. */
  readonly rule: string;
  /** The method and the request target. */
  readonly request: string;
  readonly body?: string | Uint8Array;
  /** Default with a body: `application/json`. */
  readonly contentType?: string | null;
  readonly header?: readonly Field[];
  readonly want: Want;
  /** The HTTP version that can carry it; default both. Node's parser of HTTP/1.1 knows a list of methods. */
  readonly only?: "HTTP/2";
}

/** What the answer has to be. */
export type Want =
  /** 200, and the handler of this RPC was given this message. */
  | { readonly rpc: string; readonly sink: JsonValue }
  /** This status and exactly this JSON, or no body. */
  | {
      readonly httpStatus: number;
      readonly json: JsonValue | undefined;
      readonly header?: Readonly<Record<string, string>>;
    }
  /** An error under this status whose message holds this text. */
  | {
      readonly httpStatus: number;
      readonly code: number;
      readonly message: string;
      readonly header?: Readonly<Record<string, string>>;
    };

/** The documents that rows cite. */
export const http = "google/api/http.proto";
export const json = "proto3 JSON mapping";

/** A refusal of the client's mistake: 400, INVALID_ARGUMENT. */
export function invalid(message: string): Want {
  return { httpStatus: 400, code: 3, message };
}

/** No such resource. */
export const notFound: Want = { httpStatus: 404, code: 5, message: "" };

/** The path is there, the method is not. */
export function methodNotAllowed(allow: string): Want {
  return { httpStatus: 405, code: 12, message: "", header: { allow } };
}

/** Nothing on the server has the method. */
export const methodUnknown: Want = { httpStatus: 501, code: 12, message: "" };

/** The content type is not that of JSON, which the message names; a hint may follow. */
export function unsupportedMediaType(contentType: string, hint = ""): Want {
  const message = `the content type must be application/json in UTF-8, got ${JSON.stringify(contentType)}${hint}`;
  return { httpStatus: 415, code: 3, message };
}
