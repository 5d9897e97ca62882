import { type Description, type Media, resolveSchema, type Schema } from "./description.js";

/** The fields that an example omits. A request omits read-only fields, and a response omits write-only fields. */
export type LeftOut = "readOnly" | "writeOnly";

/** Maximum nesting in examples. The limit is necessary because a schema may contain itself. */
const maxDepth = 4;

/** Maximum values in an example. The limit is necessary because schemas may branch at every level. */
const maxValueCount = 500;

/** Returns the description's example of a body, or an example created from the schema, if any. */
export function exampleOf(description: Description, media: Media, leftOut: LeftOut): unknown {
  const schema = media.schema ?? media.itemSchema;
  if (media.example !== undefined || schema === undefined) return media.example;
  return withoutLeftOut(
    description,
    schema,
    exampleOfSchema(description, schema, 0, { values: maxValueCount }),
    leftOut,
  );
}

function exampleOfSchema(description: Description, schema: Schema, depth: number, left: { values: number }): unknown {
  const { examples, enum: choices, anyOf, type, items, properties = {} } = resolveSchema(description, schema);
  if (examples !== undefined) return examples[0];
  if (choices !== undefined) return choices[0];
  if (depth === maxDepth || left.values === 0) return undefined;
  left.values -= 1;
  const nestedExample = (each: Schema): unknown => exampleOfSchema(description, each, depth + 1, left);
  if (anyOf?.[0] !== undefined) return nestedExample(anyOf[0]);
  if (type === "array") return [nestedExample(items ?? {})];
  if (type === "object") return mapMembers(properties, nestedExample);
  if (type === "boolean") return true;
  return type === "integer" || type === "number" ? 7 : "text";
}

function withoutLeftOut(description: Description, schema: Schema, value: unknown, leftOut: LeftOut): unknown {
  const { anyOf, items = {}, properties = {} } = resolveSchema(description, schema);
  // An example has the first alternative.
  if (anyOf?.[0] !== undefined) return withoutLeftOut(description, anyOf[0], value, leftOut);
  if (Array.isArray(value)) return value.map((each) => withoutLeftOut(description, items, each, leftOut));
  if (typeof value !== "object" || value === null) return value;
  const keptMembers = Object.entries(value).filter(([name]) => properties[name]?.[leftOut] !== true);
  return mapMembers<unknown>(Object.fromEntries(keptMembers), (member, name) =>
    withoutLeftOut(description, properties[name] ?? {}, member, leftOut),
  );
}

function mapMembers<Value>(object: Readonly<Record<string, Value>>, map: (value: Value, name: string) => unknown) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));
}
