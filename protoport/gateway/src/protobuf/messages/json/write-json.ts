import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type JsonWriteOptions,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { canCompile, compileFunction, isInherited, literal, memoize, TypeScope } from "../codegen.ts";
import { asFieldValues } from "./field-values.ts";
import {
  type JsonStyle,
  listToJson,
  mapToJson,
  type MessageForms,
  refuseType,
  type ToJson,
  valueToJson,
} from "./json-elements.ts";
import { jsonFormOf, packedToJson, refuseMessage } from "./json-forms.ts";
import {
  addExtensions,
  composeForm,
  createFieldForm,
  createMessageForms,
  isEmpty,
  orderedFields,
  refuseUnset,
  zeroOf,
} from "./message-forms.ts";
import { jsonNameOf } from "./names.ts";

/** Connect's options for {@link createJsonMessageWriter}. */
export type WriteJsonOptions = Partial<JsonWriteOptions>;

const noOptions: WriteJsonOptions = {};

/**
 * Creates the function that writes a type's messages as proto3 JSON text. By default, 64-bit integers are strings, and
 * fields that are not set are omitted. The function is compiled when it is first called.
 *
 * The function throws an Error if a message cannot be written, which is the handler's mistake. Examples are a Timestamp
 * out of range, an Any with a type that the registry lacks, a field mask without a JSON form, and a number in a string
 * field.
 */
export function createJsonMessageWriter(
  desc: DescMessage,
  options: JsonStyle = noOptions,
): (message: Message) => string {
  const form = formsOf(options).writerOf(desc);
  return (message) => JSON.stringify(form.toJson(message));
}

/** Creates the function that writes one field, even with its zero value. The function ignores all other fields. */
export function createJsonFieldWriter(field: DescField, options: JsonStyle): (message: Message) => string {
  const forms = formsOf(options);
  const toJson = createFieldForm(field, forms);
  const zero = zeroToJson(field, forms);
  return (message) => JSON.stringify(toJson(message) ?? zero);
}

function zeroToJson(field: DescField, forms: MessageForms): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [];
    case "map":
      return {};
    case "message":
      return null;
    default:
      return valueToJson(zeroOf(field), jsonFormOf(field, forms));
  }
}

/** Converts a message to an Any's JSON: `@type` with its fields, or with `value` if the type has its own JSON form. */
export function anyToJson(typeUrl: string, desc: DescMessage, message: Message, options: JsonStyle): JsonObject {
  const json: JsonObject = JSON.parse(JSON.stringify(packedToJson(typeUrl, desc, message, formsOf(options))));
  return json;
}

// Compiled writers are cached as long as the options object exists. A gateway has one options object.
const formsOf = memoize((options: JsonStyle) => createMessageForms(options, compileForm));

/**
 * Compiles the function that converts a type's messages to JSON. The result equals that of `composeForm`'s function, in
 * a third of the time. Omitted members are `undefined`, which `JSON.stringify` omits, so all of a type's objects have
 * the same shape.
 */
export function compileForm(desc: DescMessage, forms: MessageForms): ToJson["toJson"] {
  const names = desc.fields.map((field) => jsonNameOf(field, forms.style));
  // An object literal cannot have two members with the same name, and a member `__proto__` would set the prototype.
  const hasUnusualNames = new Set(names).size < names.length || names.includes("__proto__");
  if (hasUnusualNames || !canCompile(forms.style)) return composeForm(desc, forms);
  const typeScope = new TypeScope(scope);
  const members = orderedFields(desc).map((field) => {
    const value = fieldWriterSource(field, forms, (named) => typeScope.name(named));
    return `${literal(jsonNameOf(field, forms.style))}: ${value}`;
  });
  const json = `{\n${members.join(",\n")}\n}`;
  const hasExtensions = forms.style.registry !== undefined;
  const text = `function (message) {
  if (message?.$typeName !== ${literal(desc.typeName)}) refuseMessage(${literal(desc.typeName)});
  let value;
  return ${hasExtensions ? `addExtensions(${json}, ${typeScope.name(desc)}, message, ${typeScope.name(forms.style)})` : json};
}`;
  return compileFunction(text, typeScope.values);
}

const scope = {
  addExtensions,
  hasOwn: Object.hasOwn,
  isEmpty,
  listToJson,
  mapToJson,
  oneof: asFieldValues,
  refuseMessage,
  refuseType,
  refuseUnset,
};

/** Returns an expression for one field's JSON value, or `undefined` if omitted. The expression may assign `value`. */
function fieldWriterSource(field: DescField, forms: MessageForms, name: (value: unknown) => string): string {
  const { fieldKind, localName, oneof } = field;
  const property = `message[${literal((oneof ?? field).localName)}]`;
  const jsonForm = jsonFormOf(field, forms);
  const alwaysWritten = forms.style.alwaysEmitImplicit === true;
  if (fieldKind === "list" || fieldKind === "map") {
    const whenEmpty = fieldKind === "list" ? "[]" : "{}";
    return `${fieldKind}ToJson(${property}, ${name(jsonForm)}, ${alwaysWritten ? whenEmpty : "undefined"})`;
  }
  const valueSource =
    typeof jsonForm === "string"
      ? `typeof value === ${literal(jsonForm)} ? value : refuseType(${literal(`a ${jsonForm}`)}, value)`
      : `${name(jsonForm)}.toJson(value)`;
  if (oneof !== undefined)
    return `(value = oneof(${property})).case !== ${literal(localName)} ? undefined : (value = value.value, ${valueSource})`;
  return `(value = ${property}, ${unsetSource(field, alwaysWritten, name)}) ? ${whenUnset(field, name)} : ${valueSource}`;
}

/** Returns the condition under which `value` is omitted. */
function unsetSource(field: DescField, always: boolean, name: (value: unknown) => string): string {
  const { presence, scalar, message, localName } = field;
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) {
    // Proto2 defaults are on the prototype. Message fields have no defaults.
    const mayInherit = message === undefined || isInherited(localName);
    return `value === undefined${mayInherit ? ` || !hasOwn(message, ${literal(localName)})` : ""}`;
  }
  if (always) return "false";
  // -0 is written, although -0 equals 0.
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return "Object.is(value, 0)";
  return scalar === ScalarType.BYTES ? "isEmpty(value)" : `value === ${name(zeroOf(field))}`;
}

function whenUnset(field: DescField, name: (value: unknown) => string): string {
  return field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ? `refuseUnset(${name(field)})` : "undefined";
}
