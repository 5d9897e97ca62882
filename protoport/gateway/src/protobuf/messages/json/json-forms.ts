import {
  type DescEnum,
  type DescField,
  type DescMessage,
  isMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import {
  type Any,
  AnySchema,
  anyUnpack,
  DurationSchema,
  FieldMaskSchema,
  isWrapperDesc,
  type ListValue,
  ListValueSchema,
  type Struct,
  StructSchema,
  TimestampSchema,
  type Value,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { hasCustomJsonRepresentation } from "./custom-form.ts";
import { printFieldMask } from "./field-mask.ts";
import { asFieldValues, localFormOf, setOwn } from "./field-values.ts";
import {
  type JsonForm,
  type JsonStyle,
  mapToJson,
  type MessageForms,
  refuseType,
  type ToJson,
  valueToJson,
} from "./json-elements.ts";
import { shortestFloat } from "./shortest-float.ts";
import { printDuration, printTimestamp } from "./times.ts";

/** Returns how a field's values, or its list or map elements, are converted to JSON. */
export function jsonFormOf(field: DescField, forms: MessageForms): JsonForm {
  const { message } = field;
  if (message === undefined)
    return field.enum === undefined ? scalarForm(field.scalar, forms.style) : enumForm(field.enum, forms.style);
  const local = localFormOf({ ...field, message });
  if (local === "json-object") return { toJson: plainObjectToJson };
  if (local === "unwrapped" && isWrapperDesc(message)) return scalarForm(message.fields[0].scalar, forms.style);
  return forms.writerOf(message);
}

// JSON.stringify writes `null` if an integer field has a number that is not finite.
function scalarForm(scalar: ScalarType, { int64Numbers }: JsonStyle): JsonForm {
  switch (scalar) {
    case ScalarType.STRING:
      return "string";
    case ScalarType.BOOL:
      return "boolean";
    case ScalarType.BYTES:
      return {
        toJson: (value) => (value instanceof Uint8Array ? base64Encode(value) : refuseType("a Uint8Array", value)),
      };
    case ScalarType.FLOAT:
      return { toJson: floatToJson };
    case ScalarType.DOUBLE:
      return { toJson: doubleToJson };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { toJson: int64Numbers === true ? longToNumber : longToString };
    default:
      return "number";
  }
}

// A program may set a float field to any double. The nearest float is written, as in the binary format.
function floatToJson(value: unknown): JsonValue {
  if (typeof value !== "number") return refuseType("a number", value);
  const float = Math.fround(value);
  return float === 0 || !Number.isFinite(float) ? doubleToJson(float) : shortestFloat(float);
}

function doubleToJson(value: unknown): JsonValue {
  if (typeof value !== "number") return refuseType("a number", value);
  return Number.isFinite(value) ? signedToJson(value) : String(value);
}

// Runtimes without JSON.rawJSON write -0 as 0.
const rawWriter: JSON & { readonly rawJSON?: (text: string) => JsonObject } = JSON;
const negativeZero: JsonValue = rawWriter.rawJSON?.("-0") ?? 0;

// JSON.stringify drops the sign of zero.
function signedToJson(value: number): JsonValue {
  return Object.is(value, -0) ? negativeZero : value;
}

function longToString(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  // Fields with `jstype = JS_STRING` have a string. protobuf-es also accepts a bigint or a number for any 64-bit field.
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? String(value) : refuseType("a 64-bit integer", value);
}

function longToNumber(value: unknown): JsonValue {
  const text = longToString(value);
  const number = Number(text);
  return Number.isSafeInteger(number) && text === String(number) ? number : text;
}

function enumForm(desc: DescEnum, style: JsonStyle): JsonForm {
  if (desc.typeName === "google.protobuf.NullValue") return { toJson: () => null };
  if (style.enumAsInteger === true) return "number";
  const names = new Map<unknown, string>(desc.values.map(({ number }) => [number, nameOf(desc, number)]));
  return { toJson: (value) => names.get(value) ?? valueToJson(value, "number") };
}

// Returns an enum value's JSON name. If several values have the same number, the first value's name is used.
// protobuf-es supports JSON names for enum values since 2.12.
function nameOf(desc: DescEnum, number: number): string {
  const enumValue: { readonly name: string; readonly jsonName?: string } | undefined = desc.value[number];
  const { name = "", jsonName = name } = enumValue ?? {};
  return jsonName;
}

// Converts a google.protobuf.Struct that is stored as a plain object.
function plainObjectToJson(value: unknown): JsonObject {
  return mapToJson(value, { toJson: plainValueToJson }, {});
}

function plainValueToJson(value: unknown): JsonValue {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
  if (typeof value === "number") return finiteToJson(value);
  return Array.isArray(value) ? Array.from(value, plainValueToJson) : plainObjectToJson(value);
}

function finiteToJson(value: number): JsonValue {
  if (Number.isFinite(value)) return signedToJson(value);
  throw new Error(`a number in a google.protobuf.Value must be finite, got ${value}`);
}

/** Returns the JSON form of a well-known type, or `undefined` for every other type. */
export function formOfWellKnownType(desc: DescMessage, forms: MessageForms): ToJson | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      return formOf(AnySchema, (any) => unpackedToJson(any, forms));
    case "google.protobuf.Timestamp":
      return formOf(TimestampSchema, printTimestamp);
    case "google.protobuf.Duration":
      return formOf(DurationSchema, printDuration);
    case "google.protobuf.FieldMask":
      return formOf(FieldMaskSchema, ({ paths }) => printFieldMask(paths));
    case "google.protobuf.Struct":
      return formOf(StructSchema, structToJson);
    case "google.protobuf.Value":
      return formOf(ValueSchema, kindToJson);
    case "google.protobuf.ListValue":
      return formOf(ListValueSchema, listValueToJson);
    default: {
      if (!isWrapperDesc(desc)) return undefined;
      const form = scalarForm(desc.fields[0].scalar, forms.style);
      return formOf<DescMessage>(desc, (wrapper) => valueToJson(asFieldValues(wrapper)["value"], form));
    }
  }
}

function formOf<Desc extends DescMessage>(desc: Desc, toJson: (message: MessageShape<Desc>) => JsonValue): ToJson {
  return { toJson: (value) => (isMessage(value, desc) ? toJson(value) : refuseMessage(desc.typeName)) };
}

/** Throws the error for a value that is not a message with the expected type. */
export function refuseMessage(typeName: string): never {
  throw new TypeError(`expected a ${typeName}`);
}

function unpackedToJson(any: Any, forms: MessageForms): JsonObject {
  if (any.typeUrl === "") return {};
  const { registry } = forms.style;
  const message = registry && anyUnpack(any, registry);
  const desc = message && registry?.getMessage(message.$typeName);
  if (message === undefined || desc === undefined)
    throw new Error(`the type ${JSON.stringify(any.typeUrl)} of an Any is not in the registry`);
  return packedToJson(any.typeUrl, desc, message, forms);
}

/** Converts a message to an Any's JSON: `@type` with its fields, or with `value` if the type has its own JSON form. */
export function packedToJson(typeUrl: string, desc: DescMessage, message: Message, forms: MessageForms): JsonObject {
  const value = forms.writerOf(desc).toJson(message);
  const isObject = typeof value === "object" && !Array.isArray(value) && !hasCustomJsonRepresentation(desc);
  if (!isObject || value === null) return { "@type": typeUrl, value };
  const { "@type": own, ...fields } = value;
  if (own !== undefined)
    throw new Error(`the field "@type" of ${desc.typeName} conflicts with that of the Any that contains it`);
  return { "@type": typeUrl, ...fields };
}

function structToJson({ fields }: Struct): JsonObject {
  const json: JsonObject = {};
  for (const [key, value] of Object.entries(fields)) setOwn(json, key, kindToJson(value));
  return json;
}

function listValueToJson({ values }: ListValue): JsonValue[] {
  return values.map(kindToJson);
}

function kindToJson({ kind }: Value): JsonValue {
  switch (kind.case) {
    case "nullValue":
      return null;
    case "structValue":
      return structToJson(kind.value);
    case "listValue":
      return listValueToJson(kind.value);
    case "numberValue":
      return finiteToJson(kind.value);
    case "boolValue":
    case "stringValue":
      return kind.value;
    default:
      throw new Error("the kind of a google.protobuf.Value is missing");
  }
}
