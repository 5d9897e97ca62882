import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type BodyRules,
  type BoundFields,
  createJsonFieldReader,
  type FieldNotes,
  hasCustomJsonRepresentation,
  type JsonReadResult,
  type ReadJsonOptions,
  readPartialJson,
  type UnknownNames,
} from "../../../protobuf/index.ts";
import { toShortLine } from "../../../http/index.ts";
import { findProtoField } from "./field-path.ts";
import { createRawReader, type RestBody } from "./http-body.ts";
import { RuleProblem, UnknownFieldProblem } from "./http-rule.ts";

/**
 * Reads a body with a valid content type. A reader has one of the three functions, or none if the rule has no body.
 * The body never overrides the path. If the body is bytes, the path sets fields after the message was created. A JSON
 * body is checked against the fields that the path sets.
 */
interface RuleBodyReader {
  /** Whether the body is a google.api.HttpBody, which has bytes of any type. */
  readonly isRaw: boolean;
  readonly createMessage?: (request: RestBody) => Message;
  /** Reads the message from a JSON body if the path sets no fields. Throws like {@link setFields}. */
  readonly readMessage?: (body: Uint8Array, notes: FieldNotes | undefined) => JsonReadResult<DescMessage>;
  /**
   * Sets the JSON body's fields in a message, after the path has set fields. Returns the ignored names.
   *
   * @throws ConnectError `InvalidArgument` that names the field
   */
  readonly setFields?: (message: Message, body: Uint8Array, notes: FieldNotes | undefined) => UnknownNames;
}

/**
 * Creates a rule's body reader.
 *
 * @param body - the request field that is the body, `*` for every field that the path does not set, `""` for no body
 * @throws RuleProblem if the field `body` does not exist, or the path sets this field
 */
export function createBodyReader(
  input: DescMessage,
  body: string,
  rules: BodyRules,
  options: ReadJsonOptions,
): RuleBodyReader {
  if (body === "") return { isRaw: false };
  const readRaw = createRawReader(input, body);
  if (readRaw !== undefined) return { isRaw: true, createMessage: readRaw };
  if (body !== "*") {
    const field = bodyFieldOf(input, body);
    if (rules.bound.get(field) === "whole")
      throw new RuleProblem(`body must not be a field that the path binds, got "${toShortLine(body)}"`);
    return { isRaw: false, setFields: createJsonFieldReader(field, options, rules) };
  }
  if (rules.bound.size === 0) {
    return {
      isRaw: false,
      readMessage: (bytes, notes) => readPartialJson(input, bytes, options, rules, undefined, notes),
    };
  }
  if (hasCustomJsonRepresentation(input))
    throw new RuleProblem(`body must not be "*" because the path binds a part of ${input.typeName}`);
  return {
    isRaw: false,
    setFields: (message, bytes, notes) => readPartialJson(input, bytes, options, rules, message, notes).ignored,
  };
}

/** Returns a function that converts a binary body to a message. If `body` is a field, adds its tag and length. */
export function createFieldWrapper(input: DescMessage, body: string): (bytes: Uint8Array) => Uint8Array {
  const field = findProtoField(input, body);
  if (field === undefined) return (bytes) => bytes;
  return (bytes) => new BinaryWriter().tag(field.number, WireType.LengthDelimited).bytes(bytes).finish();
}

/** Returns the fields that the path or the body may set. @throws RuleProblem if the field `body` does not exist */
export function bindBody(input: DescMessage, body: string, boundByPath: BoundFields): BoundFields {
  if (body === "") return boundByPath;
  if (body === "*") return new Map(input.fields.map((field) => [field, "whole"]));
  return new Map([...boundByPath, [bodyFieldOf(input, body), "whole"]]);
}

function bodyFieldOf(input: DescMessage, body: string): DescField {
  const field = findProtoField(input, body);
  if (field === undefined)
    throw new UnknownFieldProblem(`body "${toShortLine(body)}" is not a field of ${input.typeName}`);
  return field;
}
