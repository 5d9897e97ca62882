import {
  type DescField,
  type DescMessage,
  isMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { asFieldValues, type FieldValues, setOwn } from "./field-values.ts";
import { type JsonStyle, listToJson, mapToJson, type MessageForms, type ToJson, valueToJson } from "./json-elements.ts";
import { jsonFormOf, refuseMessage, formOfWellKnownType } from "./json-forms.ts";
import { memoize } from "../codegen.ts";
import { jsonNameOf } from "./names.ts";

/** Creates the function that converts a type's messages to JSON objects with a member for each field. */
type CreateForm = (desc: DescMessage, forms: MessageForms) => ToJson["toJson"];

/** Creates the JSON writers for all message types with the options in `style`. */
export function createMessageForms(style: JsonStyle, make: CreateForm = composeForm): MessageForms {
  const forms: MessageForms = {
    style,
    writerOf: memoize((desc) => formOfWellKnownType(desc, forms) ?? createLazyWriter(desc)),
  };
  function createLazyWriter(desc: DescMessage): ToJson {
    const writer: ToJson = {
      toJson(message) {
        writer.toJson = make(desc, forms);
        return writer.toJson(message);
      },
    };
    return writer;
  }
  return forms;
}

/** Creates the function that converts a type's messages to JSON from one closure for each field. */
export function composeForm(desc: DescMessage, forms: MessageForms): ToJson["toJson"] {
  const fields = orderedFields(desc).map((field) => ({
    name: jsonNameOf(field, forms.style),
    toJson: createFieldForm(field, forms),
  }));
  return (message) => {
    if (!isMessage(message, desc)) return refuseMessage(desc.typeName);
    const json: JsonObject = {};
    for (const field of fields) {
      const value = field.toJson(message);
      if (value !== undefined) setOwn(json, field.name, value);
    }
    return addExtensions(json, desc, message, forms.style);
  };
}

/** Returns a type's fields by number, which is the order in JSON. */
export function orderedFields(desc: DescMessage): readonly DescField[] {
  return desc.fields.toSorted((one, other) => one.number - other.number);
}

/** Adds extensions to a message's JSON. protobuf-es converts extensions, because they are rare. */
export function addExtensions(json: JsonObject, desc: DescMessage, message: unknown, style: JsonStyle): JsonObject {
  if (style.registry === undefined || !isMessage(message) || message.$unknown === undefined) return json;
  return Object.assign(json, toJson(withoutFields(desc), message, style));
}

const withoutFields = memoize((desc: DescMessage): DescMessage => ({ ...desc, fields: [] }));

/** Creates the function that converts a message's field to JSON, or to `undefined` if the field is omitted. */
export function createFieldForm(
  field: DescField,
  forms: MessageForms,
): (message: FieldValues) => JsonValue | undefined {
  const { localName, oneof, presence, fieldKind } = field;
  const form = jsonFormOf(field, forms);
  const alwaysWritten = forms.style.alwaysEmitImplicit === true;
  if (fieldKind === "list") return (message) => listToJson(message[localName], form, alwaysWritten ? [] : undefined);
  if (fieldKind === "map") return (message) => mapToJson(message[localName], form, alwaysWritten ? {} : undefined);
  if (oneof !== undefined) {
    return (message) => {
      const oneofValue = asFieldValues(message[oneof.localName]);
      return oneofValue["case"] === localName ? valueToJson(oneofValue["value"], form) : undefined;
    };
  }
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) {
    return (message) => {
      const value = message[localName];
      // Proto2 defaults are on the prototype, so only an own property is a set field.
      if (value !== undefined && Object.hasOwn(message, localName)) return valueToJson(value, form);
      return presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ? refuseUnset(field) : undefined;
    };
  }
  const isZero = alwaysWritten ? () => false : zeroTest(field);
  return (message) => {
    const value = message[localName];
    return isZero(value) ? undefined : valueToJson(value, form);
  };
}

function zeroTest(field: DescField): (value: unknown) => boolean {
  const { scalar } = field;
  // -0 is written, although -0 equals 0.
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return (value) => Object.is(value, 0);
  if (scalar === ScalarType.BYTES) return isEmpty;
  const zero = zeroOf(field);
  return (value) => value === zero;
}

/** Returns whether a value is an empty Uint8Array. */
export function isEmpty(value: unknown): boolean {
  return value instanceof Uint8Array && value.byteLength === 0;
}

/** Returns the value for which a field with implicit presence is omitted. Floats and bytes are compared differently. */
// An enum's first value is not 0 in every edition.
export function zeroOf(field: DescField): unknown {
  if (field.enum !== undefined) return field.enum.values[0]?.number;
  return field.scalar && scalarZeroValue(field.scalar, "longAsString" in field && field.longAsString);
}

/** Throws the error for a required field that is not set. */
export function refuseUnset(field: DescField): never {
  throw new Error(`${String(field)} is required`);
}
