import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { refuse } from "../made-code/index.ts";
import type { ToJson } from "./write-context.ts";

/** Returns a list whose items are as JSON has them, or `whenEmpty`. @throws unsure unless all are of the type */
export function listAs(items: unknown, type: string, whenEmpty: JsonValue | undefined): JsonValue | undefined {
  if (!isPlainArray(items)) return refuse();
  if (items.length === 0) return whenEmpty;
  for (let index = 0; index < items.length; index++) if (typeof items[index] !== type) return refuse();
  return items;
}

/** Returns a list of what becomes of items, or `whenEmpty`. */
export function listBy(items: unknown, form: ToJson, whenEmpty: JsonValue | undefined): JsonValue | undefined {
  if (!isPlainArray(items)) return refuse();
  if (items.length === 0) return whenEmpty;
  const list: JsonValue[] = [];
  for (let index = 0; index < items.length; index++) list.push(form.toJson(items[index]));
  return list;
}

/** Returns a map whose values are as JSON has them, or `whenEmpty`. @throws unsure unless all are of the type */
export function mapAs(entries: unknown, type: string, whenEmpty: JsonValue | undefined): JsonValue | undefined {
  if (!isPlainObject(entries)) return refuse();
  let isEmpty = true;
  for (const key in entries) {
    isEmpty = false;
    if (typeof entries[key] !== type) return refuse();
  }
  return isEmpty ? whenEmpty : entries;
}

/** Returns an object of what becomes of the values of a map, or `whenEmpty`. */
export function mapBy(entries: unknown, form: ToJson, whenEmpty: JsonValue | undefined): JsonValue | undefined {
  if (!isPlainObject(entries)) return refuse();
  const keys = Object.keys(entries);
  // An object takes a member of this name for its prototype.
  if (keys.includes("__proto__")) return refuse();
  const object: Record<string, JsonValue> = {};
  for (const key of keys) object[key] = form.toJson(entries[key]);
  return keys.length === 0 ? whenEmpty : object;
}

/** Returns whether something is an object of no class, and has no say in how it becomes JSON. */
export function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || "toJSON" in value) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns whether something is an array that has no say in how it becomes JSON. */
export function isPlainArray(value: unknown): value is JsonValue[] {
  return Array.isArray(value) && !("toJSON" in value);
}
