import type { DescMessage, JsonObject, JsonValue, JsonWriteOptions } from "@bufbuild/protobuf";
import type { CodegenOptions } from "../codegen.ts";
import { asFieldValues, type FieldValues, setOwn } from "./field-values.ts";

/** Converts a value to JSON. @throws TypeError if the value does not have the type that `form` requires */
export function valueToJson(value: unknown, form: JsonForm): JsonValue {
  if (typeof form !== "string") return form.toJson(value);
  // `form` is the expected type. The comparisons with literal types narrow `value` for the compiler.
  const isJson = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isJson && typeof value === form ? value : refuseType(`a ${form}`, value);
}

/**
 * Converts a list to JSON. Returns `whenEmpty` for an empty list, and the same list if no item needs a conversion.
 *
 * @throws TypeError if `items` is not an array
 */
export function listToJson<Empty>(items: unknown, form: JsonForm, whenEmpty: Empty): JsonValue[] | Empty {
  if (!Array.isArray(items)) return refuseType("an array", items);
  if (items.length === 0) return whenEmpty;
  // A loop over indexes also checks the array's holes.
  if (typeof form === "string") {
    for (let index = 0; index < items.length; index++)
      if (typeof items[index] !== form) refuseType(`a ${form}`, items[index]);
    return "toJSON" in items ? Array.from<JsonValue>(items) : items;
  }
  const list: JsonValue[] = [];
  for (let index = 0; index < items.length; index++) list.push(form.toJson(items[index]));
  return list;
}

/** Converts a map to JSON. Returns `whenEmpty` for an empty map, and the same map if no value needs a conversion. */
export function mapToJson<Empty>(entries: unknown, form: JsonForm, whenEmpty: Empty): JsonObject | Empty {
  const values = asFieldValues(entries);
  if (hasNoValues(values)) return whenEmpty;
  if (typeof form === "string" && isOfType(values, form)) return values;
  const object: JsonObject = {};
  for (const key of Object.keys(values)) setOwn(object, key, valueToJson(values[key], form));
  return object;
}

function hasNoValues(values: FieldValues): boolean {
  for (const _ in values) return false;
  return true;
}

// Returns whether JSON.stringify writes the object unchanged: each value has the type, and no key is `toJSON`.
function isOfType(values: FieldValues, type: string): values is JsonObject {
  if ("toJSON" in values) return false;
  for (const key in values) if (typeof values[key] !== type) return false;
  return true;
}

/** Throws the error for a value with the wrong type. */
export function refuseType(expected: string, value: unknown): never {
  throw new TypeError(`expected ${expected}, got ${typeof value}`);
}

/** Options for writing messages as JSON, from Connect and from one service. */
export interface JsonStyle extends Partial<JsonWriteOptions>, CodegenOptions {
  /** Whether 64-bit integers are written as numbers if a double can represent them exactly. */
  readonly int64Numbers?: boolean;
}

/** Converts one type's values to values for `JSON.stringify`. */
export interface ToJson {
  /** @throws Error if the value has another type, or has no JSON form */
  toJson(value: unknown): JsonValue;
}

/** The converter for one type's values, or the JavaScript type's name if the values need no conversion. */
export type JsonForm = "string" | "boolean" | "number" | ToJson;

/** The JSON writers for message types. A writer is compiled on first use, because a type may contain itself. */
export interface MessageForms {
  readonly style: JsonStyle;
  writerOf(desc: DescMessage): ToJson;
}
