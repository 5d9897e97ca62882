import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { asFieldValues, type FieldValues, setOwn } from "./field-values.ts";
import type { JsonForm } from "./write-context.ts";

/** Returns a value in its form. @throws TypeError for a value of another type */
export function valueToJson(value: unknown, form: JsonForm): JsonValue {
  if (typeof form !== "string") return form.toJson(value);
  // The form names the type; the others narrow it.
  const isJson = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isJson && typeof value === form ? value : refuseType(`a ${form}`, value);
}

/**
 * Returns a list of items in their form, or `whenEmpty`: the list itself where its items are as JSON has them.
 *
 * @throws TypeError for what is no list
 */
export function listToJson<Empty>(items: unknown, form: JsonForm, whenEmpty: Empty): JsonValue[] | Empty {
  if (!Array.isArray(items)) return refuseType("an array", items);
  if (items.length === 0) return whenEmpty;
  // By index, which sees the holes of a list.
  if (typeof form === "string") {
    for (let index = 0; index < items.length; index++)
      if (typeof items[index] !== form) refuseType(`a ${form}`, items[index]);
    return "toJSON" in items ? Array.from<JsonValue>(items) : items;
  }
  const list: JsonValue[] = [];
  for (let index = 0; index < items.length; index++) list.push(form.toJson(items[index]));
  return list;
}

/** Returns an object of the values of a map in their form, or `whenEmpty`: the map itself, as {@link listToJson}. */
export function mapToJson<Empty>(entries: unknown, form: JsonForm, whenEmpty: Empty): JsonObject | Empty {
  const values = asFieldValues(entries);
  if (isEmpty(values)) return whenEmpty;
  if (typeof form === "string" && isOfType(values, form)) return values;
  const object: JsonObject = {};
  for (const key of Object.keys(values)) setOwn(object, key, valueToJson(values[key], form));
  return object;
}

function isEmpty(values: FieldValues): boolean {
  for (const _ in values) return false;
  return true;
}

// Whether JSON.stringify writes an object as it is: its values are of the type, and no method says otherwise.
function isOfType(values: FieldValues, type: string): values is JsonObject {
  if ("toJSON" in values) return false;
  for (const key in values) if (typeof values[key] !== type) return false;
  return true;
}

/** Throws the error for a value of another type. */
export function refuseType(expected: string, value: unknown): never {
  throw new TypeError(`expected ${expected}, got ${typeof value}`);
}
