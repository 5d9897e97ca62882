import { nameOf } from "./description.js";
import { element } from "./element.js";
import { linkToSchema } from "./route.js";

/** @typedef {import("./description.js").Schema} Schema */

/** @typedef {{ text: string, schema?: string }} Part a piece of text, and the schema that it names, if it names one */

/**
 * @param {Schema} schema
 * @returns {Part[]}
 */
function partsOf(schema) {
  const { type = "any JSON", format, items, additionalProperties, anyOf } = schema;
  const name = nameOf(schema);
  if (name !== undefined) return [{ text: name, schema: name }];
  if (anyOf !== undefined)
    return anyOf.flatMap((each, at) => [...(at > 0 ? [{ text: " or " }] : []), ...partsOf(each)]);
  if (type === "array") return [{ text: "list of " }, ...partsOf(items ?? {})];
  if (typeof additionalProperties === "object") return [{ text: "map of " }, ...partsOf(additionalProperties)];
  return [{ text: format === undefined ? type : `${type}, ${format}` }];
}

/**
 * Describes in a few words which values a schema accepts.
 *
 * @param {Schema | undefined} schema
 * @returns {string}
 */
export function kindOf(schema = {}) {
  return partsOf(schema)
    .map(({ text }) => text)
    .join("");
}

/**
 * Shows {@link kindOf} with links to the schemas that it names.
 *
 * @param {Schema | undefined} schema
 * @returns {(Node | string)[]}
 */
export function showKind(schema = {}) {
  return partsOf(schema).map(({ text, schema: name }) =>
    name === undefined ? text : element("a", { href: linkToSchema(name) }, [text]),
  );
}
