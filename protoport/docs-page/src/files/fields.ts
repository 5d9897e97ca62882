import { type Description, resolveSchema, type Schema } from "./description.js";
import { element, collapsible } from "./element.js";
import { kindOf, partsOf } from "./kinds.js";
import { prose } from "./prose.js";
import { linkToSchema } from "./route.js";

/** Shows an object's fields, or a short description of any other schema. */
export function showFields(description: Description, schema: Schema): HTMLElement {
  const { properties, required = [], enum: choices } = resolveSchema(description, schema);
  if (properties === undefined) return element("p", {}, element("code", {}, choices?.join(", ") ?? kindOf(schema)));
  const fieldRows = Object.entries(properties).flatMap(([name, property]) =>
    definition(name, property, { ...property, required: required.includes(name) }, [
      ...prose(description, property.description),
      // If an object has no schema name, its fields are shown inline.
      ...(property.properties === undefined ? [] : [showFields(description, property)]),
      ...showValueNames(property),
    ]),
  );
  return element("dl", {}, ...fieldRows);
}

/** The properties that are shown as badges on a field or parameter. */
interface Marked {
  readonly required?: boolean;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly deprecated?: boolean;
}

/** Shows a field or parameter with its type, badges and description. */
export function definition(
  name: string,
  schema: Schema | undefined,
  { required, readOnly, writeOnly, deprecated }: Marked,
  about: readonly HTMLElement[],
): HTMLElement[] {
  const marks = Object.entries({ required, "read-only": readOnly, "write-only": writeOnly, deprecated });
  const badges = marks.flatMap(([mark, has]) => (has ? [element("span", { class: `mark ${mark}` }, mark)] : []));
  const kind = element("span", { class: "kind" }, ...showKind(schema));
  return [element("dt", {}, name, kind, ...badges), element("dd", {}, ...about)];
}

function showValueNames({ "x-value-names": names }: Schema): HTMLElement[] {
  if (names === undefined) return [];
  const rows = Object.entries(names).flatMap(([value, name]) => [
    element("dt", {}, value),
    element("dd", {}, element("code", {}, name)),
  ]);
  return [collapsible(`Names of its ${rows.length / 2} values`, element("dl", { class: "values" }, ...rows))];
}

/** Shows the text of {@link kindOf}, in which schema names are links. */
export function showKind(schema: Schema = {}): (Node | string)[] {
  return partsOf(schema).map(({ text, name }) =>
    name === undefined ? text : element("a", { href: linkToSchema(name) }, text),
  );
}
