import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type BoundFields,
  type JsonReadResult,
  type ReadJsonOptions,
  type ReadNotes,
  createJsonFieldReader,
  readPartialJson,
  UnknownNames,
} from "../json/index.ts";
import { errorWithHttpStatus } from "./error-to-rest.ts";
import { findProtoField } from "./field-path.ts";
import { createRawReader } from "./http-body.ts";

/** The whole body of a request, with content codings undone. */
export interface RequestBody {
  /** The value of the header `Content-Type`; `null` when there is none. */
  readonly contentType: string | null;
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/**
 * Reads a body of at least one byte into a new request message. Throws a `ConnectError` of `InvalidArgument` that names
 * the field, or whose HTTP status is 415.
 */
export type BodyReader = (request: RequestBody, notes: ReadNotes | undefined) => JsonReadResult<DescMessage>;

/**
 * Creates the body reader of a rule.
 *
 * @param body - the request field that is the body, `*` for every field that the path does not set, `""` for no body
 * @param boundByPath - the fields that the path sets, so that the body must not
 * @throws Error when there is no such field, or the path sets it
 */
export function createBodyReader(
  input: DescMessage,
  body: string,
  boundByPath: BoundFields,
  options: ReadJsonOptions,
): BodyReader {
  if (body === "") {
    return () => {
      throw noBodyTaken();
    };
  }
  const readRaw = createRawReader(input, body);
  if (readRaw !== undefined) {
    return (request) => {
      const message = create(input);
      readRaw(request, message);
      return { message, ignored: nothing };
    };
  }
  if (body === "*") {
    return (request, notes) => {
      requireJson(request.contentType);
      return readPartialJson(input, request.body, options, boundByPath, notes);
    };
  }
  const field = bodyFieldOf(input, body);
  const below = boundByPath.get(field);
  if (below === "whole") throw new Error(`body "${body}" is a field that the path binds`);
  const readField = createJsonFieldReader(field, options, below);
  return (request, notes) => {
    requireJson(request.contentType);
    const message = create(input);
    return { message, ignored: readField(message, request.body, notes) };
  };
}

/**
 * Adds the fields that the body may set to those that the path sets: the query must set none of them.
 *
 * @throws Error when the body is a field that does not exist
 */
export function bindBody(input: DescMessage, body: string, boundByPath: BoundFields): BoundFields {
  if (body === "") return boundByPath;
  if (body === "*") return new Map(input.fields.map((field) => [field, "whole"]));
  return new Map([...boundByPath, [bodyFieldOf(input, body), "whole"]]);
}

function bodyFieldOf(input: DescMessage, body: string): DescField {
  const field = findProtoField(input, body);
  if (field === undefined) throw new Error(`body "${body}" is no field of ${input.typeName}`);
  return field;
}

/**
 * Returns why a rule refuses every body of this content type; `undefined` when it does not.
 *
 * @param body - as for {@link createBodyReader}
 */
export function bodyProblem(input: DescMessage, body: string, contentType: string | null): ConnectError | undefined {
  if (body === "") return noBodyTaken();
  if (createRawReader(input, body) !== undefined) return undefined;
  return isJsonContentType(contentType) ? undefined : notJson();
}

const nothing = new UnknownNames();

function noBodyTaken(): ConnectError {
  return new ConnectError("this operation takes no body", Code.InvalidArgument);
}

// RFC 9110 §15.5.16.
function notJson(): ConnectError {
  return errorWithHttpStatus("the content type is not application/json in UTF-8", Code.InvalidArgument, 415);
}

function requireJson(contentType: string | null): void {
  if (!isJsonContentType(contentType)) throw notJson();
}

// RFC 9110 §8.3.1 without the parameters, type "/" subtype, each a token; a `+json` type is JSON too (RFC 6839 §3.1).
const jsonType = /^(?:application\/json|[!#$%&'*+\-.^_`|~0-9a-z]+\/[!#$%&'*+\-.^_`|~0-9a-z]+\+json)$/;
// RFC 8259 §8.1: JSON is UTF-8, so no other charset is possible.
const utf8Charset = /^charset=(?:utf-8|"utf-8")$/;

// A body without a content type is taken for JSON as well.
function isJsonContentType(contentType: string | null): boolean {
  if (contentType === null || contentType === "application/json") return true;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!jsonType.test(type.trim())) return false;
  // RFC 8259 §11: parameters other than charset mean nothing to JSON.
  return parameters.every((parameter) => {
    const text = parameter.trim();
    return !text.startsWith("charset") || utf8Charset.test(text);
  });
}
