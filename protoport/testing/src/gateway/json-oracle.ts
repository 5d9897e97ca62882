import type { DescField, DescMessage, JsonObject, JsonValue, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import { isMessage, toJson, toJsonString } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyUnpack, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { hasCustomJsonRepresentation } from "../../../gateway/src/protobuf/messages/json/custom-form.ts";
import { printFieldMask } from "../../../gateway/src/protobuf/messages/json/field-mask.ts";
import { asFieldValues, loadField, setOwn } from "../../../gateway/src/protobuf/messages/json/field-values.ts";
import { memoize } from "../../../gateway/src/protobuf/messages/codegen.ts";

type WriteJsonOptions = Partial<JsonWriteOptions>;

/** Writes a message with protobuf-es's `toJson`, with which tests compare the gateway's own writer. */
export const writeByProtobufEs = (desc: DescMessage, message: Message, options: WriteJsonOptions): string =>
  mayHoldMask(desc) ? JSON.stringify(messageToJson(desc, message, options)) : toJsonString(desc, message, options);

// Writes a google.protobuf.Any. A type with a special JSON form is written under `value`.
function anyToJson(typeUrl: string, desc: DescMessage, message: Message, options: WriteJsonOptions): JsonObject {
  const type = { "@type": typeUrl };
  const json = messageToJson(desc, message, options);
  return isObject(json) && !hasCustomJsonRepresentation(desc) ? { ...type, ...json } : { ...type, value: json };
}

/** A message type, split into the fields that protobuf-es writes and the fields that may contain a field mask. */
type Parts = { readonly plain: DescMessage; readonly masked: readonly DescField[] };

function messageToJson(desc: DescMessage, message: Message, options: WriteJsonOptions): JsonValue {
  if (isMessage(message, FieldMaskSchema)) return printFieldMask(message.paths);
  if (isMessage(message, AnySchema)) return packedToJson(message, options);
  const { plain, masked } = partsOf(desc);
  const json = toJson(plain, message, options);
  if (!isObject(json)) return json;
  for (const field of masked) {
    const value = maskedFieldToJson(field, message, options);
    if (value !== undefined) setOwn(json, jsonNameOf(field, options), value);
  }
  return sortMembers(json, desc, options);
}

// Sorts fields by their numbers, and extensions after all fields.
function sortMembers(json: JsonObject, desc: DescMessage, options: WriteJsonOptions): JsonObject {
  const fields = desc.fields.toSorted((one, other) => one.number - other.number);
  const names = new Set([...fields.map((field) => jsonNameOf(field, options)), ...Object.keys(json)]);
  const ordered: JsonObject = {};
  for (const name of names) if (Object.hasOwn(json, name)) setOwn(ordered, name, json[name]);
  return ordered;
}

function packedToJson(any: Any, options: WriteJsonOptions): JsonValue {
  const { registry } = options;
  const message = registry && anyUnpack(any, registry);
  const desc = message && registry?.getMessage(message.$typeName);
  // protobuf-es writes an empty Any, and has an error for an unknown type.
  return desc === undefined || message === undefined
    ? toJson(AnySchema, any, options)
    : anyToJson(any.typeUrl, desc, message, options);
}

function maskedFieldToJson(field: DescField, message: Message, options: WriteJsonOptions): JsonValue | undefined {
  const value = loadField(message, field);
  const { message: desc } = field;
  if (value === undefined || desc === undefined) return undefined;
  const write = (element: unknown): JsonValue => {
    if (isMessage(element)) return messageToJson(desc, element, options);
    throw new TypeError(`${field.name} holds something other than messages`);
  };
  if (field.fieldKind === "message") return write(value);
  const json = Array.isArray(value)
    ? value.map(write)
    : Object.fromEntries(Object.entries(asFieldValues(value)).map(([key, element]) => [key, write(element)]));
  return Object.keys(json).length > 0 || options.alwaysEmitImplicit === true ? json : undefined;
}

const partsOf = memoize((desc: DescMessage): Parts => {
  const masked = hasCustomJsonRepresentation(desc)
    ? []
    : desc.fields.filter(({ message }) => message !== undefined && mayHoldMask(message));
  const others = desc.fields.filter((field) => !masked.includes(field));
  return { plain: masked.length === 0 ? desc : withFields(desc, others), masked };
});

// With fewer fields in the descriptor, protobuf-es writes a part of the message.
const withFields = (desc: DescMessage, fields: DescField[]): DescMessage => ({ ...desc, fields });
// An Any may contain a field mask.
const typesOfMasks: ReadonlySet<string> = new Set([FieldMaskSchema.typeName, AnySchema.typeName]);

const mayHoldMask = memoize((desc: DescMessage): boolean =>
  mayHold(desc, ({ typeName }) => typesOfMasks.has(typeName)),
);

/** Returns whether the test is true for a message type, or for a type that it may contain at any depth. */
function mayHold(desc: DescMessage, test: (desc: DescMessage) => boolean, seen: Set<DescMessage> = new Set()): boolean {
  if (test(desc)) return true;
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(({ message }) => message !== undefined && mayHold(message, test, seen));
}

const jsonNameOf = (field: DescField, options: WriteJsonOptions): string =>
  options.useProtoFieldName === true ? field.name : field.jsonName;

const isObject = (json: JsonValue | undefined): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json);
