import type { JsonValue, Message } from "@bufbuild/protobuf";
import { clearField, isMessage } from "@bufbuild/protobuf";
import { toUtf8 } from "@protoport/gateway/exchange";
import {
  asFieldValues,
  createFieldForm,
  createFieldSetter,
  createMessageForms,
  type JsonStyle,
  loadField,
} from "@protoport/gateway/messages";
import { type FieldPath, findProtoField, isHttpBodyType, isMediaType } from "@protoport/gateway/rest";
import { RefusalError, refuseUnwritable } from "./refusal.ts";
import type { RestClientRule } from "./rest-rule.ts";

/** A request body. */
export interface EncodedBody {
  /** The content type, or `undefined` for a google.api.HttpBody without a content type. */
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array;
}

/**
 * Returns the request body for a message, or `undefined` if the request has no body.
 *
 * @throws RefusalError if the message cannot be written as JSON, or if an HttpBody has an invalid content type
 */
export type BodyWriter = (message: Message) => EncodedBody | undefined;

/** Creates the writer for a rule's bodies: JSON without the path fields, or the bytes in a google.api.HttpBody. */
export function createBodyWriter({ method, pattern, variables }: RestClientRule, style: JsonStyle): BodyWriter {
  const { input } = method;
  const { body } = pattern;
  const forms = createMessageForms(style);
  if (body === "") return () => undefined;
  if (body === "*") {
    if (isHttpBodyType(input)) return (message) => encodeRawBody(input.typeName, message);
    return (message) => {
      const withoutPathFields = variables.reduce((left, { path }) => withoutField(left, path), message);
      return toJsonBody(refuseUnwritable("", () => forms.writerOf(input).toJson(withoutPathFields)));
    };
  }
  const field = findProtoField(input, body);
  if (field === undefined) throw new TypeError(`body "${body}" is not a field of ${input.typeName}`);
  if (isHttpBodyType(field.message)) return (message) => encodeRawBody(body, loadField(asFieldValues(message), field));
  const toJson = createFieldForm(field, forms);
  const variablesInField = variables.filter(({ path }) => path[0] === field);
  return (message) => {
    const withoutPathFields = variablesInField.reduce((left, { path }) => withoutField(left, path), message);
    const json = refuseUnwritable(body, () => toJson(asFieldValues(withoutPathFields)));
    return json === undefined ? undefined : toJsonBody(json);
  };
}

/** Returns a shallow copy of a message without the field at a path. */
function withoutField(message: Message, [field, second, ...rest]: FieldPath): Message {
  const copy: Message = Object.assign(Object.create(Object.getPrototypeOf(message)), message);
  const child = loadField(asFieldValues(message), field);
  if (second === undefined) clearField(copy, field);
  else if (isMessage(child)) createFieldSetter(field)(asFieldValues(copy), withoutField(child, [second, ...rest]));
  return copy;
}

function toJsonBody(value: JsonValue): EncodedBody {
  const json = JSON.stringify(value);
  // JSON.stringify writes `\ud` only for lone surrogates, which other parsers would decode as U+FFFD.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(json))
    throw new RefusalError("a string has a lone surrogate, which UTF-8 cannot encode");
  return { contentType: "application/json", bytes: toUtf8(json) };
}

function encodeRawBody(name: string, body: unknown): EncodedBody {
  if (!isMessage(body)) throw new RefusalError(`${name}: must be set, because it is the raw body of the request`);
  const { contentType, data, extensions } = asFieldValues(body);
  if (!(data instanceof Uint8Array)) throw new RefusalError(`${name}.data: must be a Uint8Array`);
  if (Array.isArray(extensions) && extensions.length > 0)
    throw new RefusalError(`${name}.extensions: must be empty, because a raw body cannot contain extensions`);
  const type = typeof contentType === "string" ? contentType : "";
  if (type !== "" && !isMediaType(type))
    throw new RefusalError(`${name}.content_type: must be a media type such as image/png`);
  return { contentType: type === "" ? undefined : type, bytes: data };
}
