import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ForbiddenFields } from "../json/read-context.ts";
import type { ReadJsonOptions } from "../json/read-json.ts";
import { createJsonFieldReader, readJsonReport } from "../json/read-json.ts";
import { isJsonContentType } from "./content-type.ts";
import { findProtoField } from "./field-path.ts";
import { errorWithHttpStatus } from "./http-status.ts";

/** The body of a request, whole and with content codings undone. */
export interface RequestBody {
  /** The value of the header `Content-Type`; `null` when there is none. */
  readonly contentType: string | null;
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/** A request message with what the body says in it, and which fields of the body were ignored. */
export interface BodyReading {
  readonly message: Message;
  readonly ignored: readonly string[];
}

/** Reads a body. Throws a `ConnectError` of `InvalidArgument` that names the field, or with HTTP status 415. */
export type BodyReader = (request: RequestBody) => BodyReading;

const nothing: readonly string[] = [];

/**
 * Makes the reader of the bodies of a rule.
 *
 * @param body - the request field that is the body, `*` for all that the path does not bind, `""` for none
 * @param pathFields - what the path binds, which the body must not set
 * @throws Error when there is no such field, or the path binds it
 */
export function createBodyReader(
  input: DescMessage,
  body: string,
  pathFields: ForbiddenFields,
  options: ReadJsonOptions,
): BodyReader {
  if (body === "") return (request) => readNoBody(input, request);
  if (body === "*") {
    return (request) => {
      if (hasBody(request)) return readJsonReport(input, request.body, options, pathFields);
      return { message: create(input), ignored: nothing };
    };
  }
  const field = bodyFieldOf(input, body);
  const below = pathFields.get(field);
  if (below === true) throw new Error(`body "${body}" is a field that the path binds`);
  const readField = createJsonFieldReader(field, below);
  return (request) => {
    const message = create(input);
    return { message, ignored: hasBody(request) ? readField(message, request.body, options) : nothing };
  };
}

/**
 * The fields that the query must not set: those of the path, and what the body may set.
 *
 * @throws Error when the body is a field that is not there
 */
export function forbidInQuery(input: DescMessage, body: string, pathFields: ForbiddenFields): ForbiddenFields {
  if (body === "") return pathFields;
  // With body "*" all that the path does not bind is the body's, and nothing is left for the query.
  if (body === "*") return new Map(input.fields.map((field) => [field, true]));
  return new Map([...pathFields, [bodyFieldOf(input, body), true]]);
}

function bodyFieldOf(input: DescMessage, body: string): DescField {
  const field = findProtoField(input, body);
  if (field === undefined) throw new Error(`body "${body}" is no field of ${input.typeName}`);
  return field;
}

// Zero bytes are no body, whatever the content type says.
function hasBody(request: RequestBody): boolean {
  if (request.body.byteLength === 0) return false;
  if (isJsonContentType(request.contentType)) return true;
  // RFC 9110 §15.5.16.
  throw errorWithHttpStatus("the content type is not application/json in UTF-8", Code.InvalidArgument, 415);
}

function readNoBody(input: DescMessage, request: RequestBody): BodyReading {
  if (request.body.byteLength > 0) throw new ConnectError("this operation takes no body", Code.InvalidArgument);
  return { message: create(input), ignored: nothing };
}
