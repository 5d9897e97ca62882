import { resolveSchema } from "./description.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Media} Media
 * @typedef {import("./description.js").Schema} Schema
 * @typedef {"readOnly" | "writeOnly"} Mark
 */

// The depth to which examples are nested, because a schema may contain itself.
const depthMax = 4;

/**
 * Returns an example of a body: the description's own, or one that is made from the schema.
 *
 * @param {Description} description
 * @param {Media} media
 * @param {Mark} leftOut the fields that the body never has: read-only ones in a request, write-only ones in an answer
 * @returns {unknown} `undefined` if there is none
 */
export function exampleOf(description, { schema, itemSchema, example }, leftOut) {
  const described = schema ?? itemSchema;
  if (example !== undefined || described === undefined) return example;
  return without(description, described, exampleOfSchema(description, described, 0), leftOut);
}

/**
 * @param {Description} description
 * @param {Schema} schema
 * @param {number} depth
 * @returns {unknown}
 */
function exampleOfSchema(description, schema, depth) {
  const { examples, enum: choices, anyOf, type, items, properties = {} } = resolveSchema(description, schema);
  if (examples !== undefined) return examples[0];
  if (choices !== undefined) return choices[0];
  if (depth === depthMax) return undefined;
  if (anyOf?.[0] !== undefined) return exampleOfSchema(description, anyOf[0], depth + 1);
  if (type === "array") return [exampleOfSchema(description, items ?? {}, depth + 1)];
  if (type !== "object") return exampleOfType(type);
  return mapMembers(properties, (property) => exampleOfSchema(description, property, depth + 1));
}

/** @param {string | undefined} type */
function exampleOfType(type) {
  if (type === "boolean") return true;
  return type === "integer" || type === "number" ? 7 : "text";
}

/**
 * @param {Description} description
 * @param {Schema} schema
 * @param {unknown} value
 * @param {Mark} leftOut
 * @returns {unknown}
 */
function without(description, schema, value, leftOut) {
  const { items = {}, properties = {} } = resolveSchema(description, schema);
  if (Array.isArray(value)) return value.map((each) => without(description, items, each, leftOut));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => properties[name]?.[leftOut] !== true);
  return mapMembers(Object.fromEntries(kept), (member, name) =>
    without(description, properties[name] ?? {}, member, leftOut),
  );
}

/**
 * @template Value
 * @param {Record<string, Value>} object
 * @param {(value: Value, name: string) => unknown} map
 */
function mapMembers(object, map) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));
}
