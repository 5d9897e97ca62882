import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import {
  type BoundFields,
  type JsonReadResult,
  type ReadJsonOptions,
  type ReadNotes,
  createJsonFieldReader,
  readPartialJson,
  UnknownNames,
} from "../json/index.ts";
import { findProtoField } from "./field-path.ts";
import { createRawReader } from "./http-body.ts";
import { RuleProblem } from "./rule-problem.ts";

/** The whole body of a request, or a message of a stream, with content codings undone. */
export interface RequestBody {
  /** The value of the header `Content-Type`; `null` when there is none. */
  readonly contentType: string | null;
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/**
 * Reads a body whose content type is right into a new request message. Throws a `ConnectError` of `InvalidArgument`
 * that names the field.
 */
export type BodyReader = (request: RequestBody, notes: ReadNotes | undefined) => JsonReadResult<DescMessage>;

/**
 * Creates the body reader of a rule.
 *
 * @param body - the request field that is the body, `*` for every field that the path does not set, `""` for no body
 * @param boundByPath - the fields that the path sets, so that the body must not
 * @throws RuleProblem when there is no such field, or the path sets it
 */
export function createBodyReader(
  input: DescMessage,
  body: string,
  boundByPath: BoundFields,
  options: ReadJsonOptions,
): BodyReader {
  if (body === "") return () => ({ message: create(input), ignored: nothing });
  const readRaw = createRawReader(input, body);
  if (readRaw !== undefined) {
    return (request) => {
      const message = create(input);
      readRaw(request, message);
      return { message, ignored: nothing };
    };
  }
  if (body === "*") {
    return (request, notes) => readPartialJson(input, request.body, options, boundByPath, notes);
  }
  const field = bodyFieldOf(input, body);
  const below = boundByPath.get(field);
  if (below === "whole") throw new RuleProblem(`body "${body}" is a field that the path binds`);
  const readField = createJsonFieldReader(field, options, below);
  return (request, notes) => {
    const message = create(input);
    return { message, ignored: readField(message, request.body, notes) };
  };
}

/**
 * Adds the fields that the body may set to those that the path sets: the query must set none of them.
 *
 * @throws RuleProblem when the body is a field that does not exist
 */
export function bindBody(input: DescMessage, body: string, boundByPath: BoundFields): BoundFields {
  if (body === "") return boundByPath;
  if (body === "*") return new Map(input.fields.map((field) => [field, "whole"]));
  return new Map([...boundByPath, [bodyFieldOf(input, body), "whole"]]);
}

function bodyFieldOf(input: DescMessage, body: string): DescField {
  const field = findProtoField(input, body);
  if (field === undefined) throw new RuleProblem(`body "${body}" is no field of ${input.typeName}`);
  return field;
}

const nothing = new UnknownNames();
