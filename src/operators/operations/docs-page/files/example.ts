import { type Description, type Media, resolveSchema, type Schema } from "./description.js";

/** The fields that a body never has: read-only ones in a request, write-only ones in an answer. */
export type LeftOut = "readOnly" | "writeOnly";

/** Returns the description's own example of a body; `undefined` for none. */
export function exampleOf(description: Description, media: Media, leftOut: LeftOut): unknown {
  const schema = media.schema ?? media.itemSchema ?? {};
  return media.example ?? without(description, schema, resolveSchema(description, schema).examples?.[0], leftOut);
}

function without(description: Description, schema: Schema, value: unknown, leftOut: LeftOut): unknown {
  const { items = {}, properties = {} } = resolveSchema(description, schema);
  if (Array.isArray(value)) return value.map((each) => without(description, items, each, leftOut));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => properties[name]?.[leftOut] !== true);
  return Object.fromEntries(
    kept.map(([name, member]) => [name, without(description, properties[name] ?? {}, member, leftOut)]),
  );
}
