import {
  type DescEnum,
  type DescMessage,
  isMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import {
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
  type WktWrapperDesc,
} from "@bufbuild/protobuf/wkt";
import { refuse } from "../made-code/index.ts";
import { printFieldMask } from "./field-mask.ts";
import { asFieldValues, setOwn } from "./field-values.ts";
import { isPlainArray, isPlainObject } from "./json-elements.ts";
import { printDuration, printTimestamp } from "./times.ts";
import { enumNames } from "./value-writers.ts";
import type { JsonStyle, ToJson } from "./write-context.ts";

/** How values become those of JSON, or their type if they are that already. */
export type JsonForm = "string" | "boolean" | "number" | ToJson;

/** Returns the form of a scalar type. What is no finite number becomes `null` in a field of integers. */
export function scalarJsonForm(scalar: ScalarType, { int64Numbers }: JsonStyle): JsonForm {
  switch (scalar) {
    case ScalarType.STRING:
      return "string";
    case ScalarType.BOOL:
      return "boolean";
    case ScalarType.BYTES:
      return { toJson: (value) => (value instanceof Uint8Array ? base64Encode(value) : refuse()) };
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { toJson: floatToJson };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { toJson: int64Numbers === true ? longToNumber : longToText };
    default:
      return "number";
  }
}

function floatToJson(value: unknown): JsonValue {
  if (typeof value !== "number") return refuse();
  return Number.isFinite(value) ? value : String(value);
}

function longToText(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  // As text where `jstype` asks for it.
  return typeof value === "string" ? value : refuse();
}

function longToNumber(value: unknown): JsonValue {
  if (typeof value !== "bigint") return refuse();
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** Returns the form of an enum. */
export function enumJsonForm(desc: DescEnum, style: JsonStyle): JsonForm {
  if (desc.typeName === "google.protobuf.NullValue") return { toJson: () => null };
  if (style.enumAsInteger === true) return "number";
  const names = enumNames(desc, style);
  return { toJson: (value) => names.get(value) ?? (typeof value === "number" ? value : refuse()) };
}

/** The form of a google.protobuf.Struct that is stored as a plain object. */
export const plainObjectForm: ToJson = {
  toJson: (value) => (isPlainObject(value) && Object.values(value).every(isJson) ? value : refuse()),
};

function isJson(value: unknown): boolean {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value);
  // A copy, because an array may have holes, of which every() knows nothing.
  if (isPlainArray(value)) return [...value].every(isJson);
  return isPlainObject(value) && Object.values(value).every(isJson);
}

/** Returns the form of a well-known type that has one of its own; `undefined` for every other type, and for Any. */
export function wellKnownJsonForm(desc: DescMessage, style: JsonStyle): ToJson | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return formOf(TimestampSchema, printTimestamp);
    case "google.protobuf.Duration":
      return formOf(DurationSchema, printDuration);
    case "google.protobuf.FieldMask":
      return formOf(FieldMaskSchema, ({ paths }) => printFieldMask(paths));
    case "google.protobuf.Struct":
      return formOf(StructSchema, structToJson);
    case "google.protobuf.Value":
      return formOf(ValueSchema, valueToJson);
    case "google.protobuf.ListValue":
      return formOf(ListValueSchema, listToJson);
    default:
      return isWrapperDesc(desc) ? wrapperForm(desc, style) : undefined;
  }
}

function formOf<Desc extends DescMessage>(desc: Desc, toJson: (message: MessageShape<Desc>) => JsonValue): ToJson {
  return { toJson: (value) => (isMessage(value, desc) ? toJson(value) : refuse()) };
}

function wrapperForm(desc: WktWrapperDesc, style: JsonStyle): ToJson {
  const form = scalarJsonForm(desc.fields[0].scalar, style);
  return formOf<DescMessage>(desc, (wrapper) => {
    const { value } = asFieldValues(wrapper);
    return typeof form === "string" ? ofType(form, value) : form.toJson(value);
  });
}

function ofType(type: "string" | "boolean" | "number", value: unknown): JsonValue {
  if (typeof value !== type) return refuse();
  return typeof value === "string" || typeof value === "boolean" || typeof value === "number" ? value : refuse();
}

function structToJson({ fields }: Struct): JsonObject {
  const json: JsonObject = {};
  for (const [key, value] of Object.entries(fields)) setOwn(json, key, valueToJson(value));
  return json;
}

function listToJson({ values }: ListValue): JsonValue[] {
  return values.map(valueToJson);
}

function valueToJson({ kind }: Value): JsonValue {
  switch (kind.case) {
    case "nullValue":
      return null;
    case "structValue":
      return structToJson(kind.value);
    case "listValue":
      return listToJson(kind.value);
    case "numberValue":
      return Number.isFinite(kind.value) ? kind.value : refuse();
    case "boolValue":
      return typeof kind.value === "boolean" ? kind.value : refuse();
    case "stringValue":
      return typeof kind.value === "string" ? kind.value : refuse();
    default:
      return refuse();
  }
}
