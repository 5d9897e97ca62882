import { resolveSchema } from "./description.js";
import { element } from "./element.js";
import { prose } from "./prose.js";
import { kindOf, showKind } from "./schema-kind.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Schema} Schema
 */

/**
 * Shows the fields of an object, or describes any other schema in a few words.
 *
 * @param {Description} description
 * @param {Schema} schema
 * @returns {HTMLElement}
 */
export function showFields(description, schema) {
  const { properties, required = [], enum: choices } = resolveSchema(description, schema);
  if (properties === undefined) return element("p", {}, [element("code", {}, [choices?.join(", ") ?? kindOf(schema)])]);
  return element(
    "dl",
    {},
    Object.entries(properties).flatMap(([name, property]) =>
      definition(name, showKind(property), marksOf(property, required.includes(name)), [
        ...prose(property.description),
        // An object without a name of its own is shown where it is.
        ...(property.properties === undefined ? [] : [showFields(description, property)]),
        ...showValueNames(property),
      ]),
    ),
  );
}

/**
 * Shows a term with its kind, its marks, and what is said about it.
 *
 * @param {string} name
 * @param {(Node | string)[]} kind
 * @param {string[]} marks
 * @param {HTMLElement[]} about
 * @returns {HTMLElement[]}
 */
export function definition(name, kind, marks, about) {
  const badges = marks.map((mark) => element("span", { class: `mark ${mark}` }, [mark]));
  return [element("dt", {}, [name, element("span", { class: "kind" }, kind), ...badges]), element("dd", {}, about)];
}

/**
 * @param {Schema} schema
 * @param {boolean} isRequired
 */
function marksOf({ readOnly, writeOnly, deprecated }, isRequired) {
  return [
    ...(isRequired ? ["required"] : []),
    ...(readOnly ? ["read-only"] : []),
    ...(writeOnly ? ["write-only"] : []),
    ...(deprecated ? ["deprecated"] : []),
  ];
}

/** @param {Schema} schema */
function showValueNames({ "x-value-names": names }) {
  if (names === undefined) return [];
  const rows = Object.entries(names).flatMap(([value, name]) => [
    element("dt", {}, [value]),
    element("dd", {}, [element("code", {}, [name])]),
  ]);
  const summary = element("summary", {}, [`The names of its ${rows.length / 2} values`]);
  return [element("details", {}, [summary, element("dl", { class: "values" }, rows)])];
}
