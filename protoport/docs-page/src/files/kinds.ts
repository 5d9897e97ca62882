// Describes schemas in a few words, such as "array of Shelf".
import { nameOf, type Schema } from "./description.js";

/** A text, and the name of the schema that the text links to. */
interface Part {
  readonly text: string;
  readonly name?: string;
}

/** Returns the parts of the text that describes the values that a schema accepts. */
export function partsOf(schema: Schema): Part[] {
  const { enum: choices, format, items, additionalProperties, anyOf } = schema;
  const { type = choices?.map((choice) => JSON.stringify(choice)).join(" or ") ?? "any JSON" } = schema;
  const name = nameOf(schema);
  if (name !== undefined) return [{ text: name, name }];
  if (anyOf !== undefined)
    return anyOf.flatMap((each, at) => [...(at > 0 ? [{ text: " or " }] : []), ...partsOf(each)]);
  if (type === "array") return [{ text: "array of " }, ...partsOf(items ?? {})];
  if (typeof additionalProperties === "object") return [{ text: "map of " }, ...partsOf(additionalProperties)];
  return [{ text: format === undefined ? type : `${type}, ${format}` }];
}

/** Describes the values that a schema accepts. */
export function kindOf(schema: Schema = {}): string {
  return partsOf(schema)
    .map(({ text }) => text)
    .join("");
}
