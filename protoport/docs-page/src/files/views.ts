import type { Connection } from "./connection.js";
import {
  accessOf,
  type Content,
  type Description,
  type Group,
  groupsOf,
  isBytes,
  isLines,
  mainMediaOf,
  type Operation,
  type OperationObject,
  resolveSchema,
  type Schema,
  titleOf,
} from "./description.js";
import { collapsible, element, note, terminal } from "./element.js";
import { exampleOf, type LeftOut } from "./example.js";
import { jsonText } from "./json-text.js";
import { kindOf, partsOf } from "./kinds.js";
import { prose } from "./prose.js";
import { linkToOperation, linkToSchema } from "./route.js";
import { showTryIt } from "./try-it.js";

/** A view's content and title. */
export interface View {
  readonly title: string;
  readonly content: readonly HTMLElement[];
}

/** Shows an overview of the API. If the API has only one operation, the operation is shown instead of a list. */
export function overview(description: Description, connection: Connection): View {
  const { info } = description;
  const groups = groupsOf(description);
  const [only, ...others] = groups.flatMap(({ operations }) => operations);
  const { name = "", url, email } = info.contact ?? {};
  const href = url ?? (email === undefined ? undefined : `mailto:${email}`);
  const contact = href === undefined ? name : element("a", { href, rel: "noreferrer" }, name || href);
  const licence = info.license === undefined ? "" : `${info.license.name} licence`;
  const infoItems = [`Version ${info.version}`, licence, contact].filter((fact) => fact !== "" && fact !== info.title);
  const head = element(
    "header",
    { class: "about" },
    element("h1", { tabindex: "-1" }, info.title),
    note(...infoItems.flatMap((fact, at) => (at === 0 ? [fact] : [" · ", fact]))),
    ...prose(description, info.description),
  );
  const isSingle = only !== undefined && others.length === 0;
  const operationNodes = isSingle
    ? [showOperation(description, only, connection, "h2")]
    : groups.map((group) => showGroup(description, group));
  return { title: `${info.title} ${info.version}`, content: [head, ...operationNodes] };
}

function showGroup(description: Description, group: Group): HTMLElement {
  const { name, operations } = group;
  const items = operations.map((operation) =>
    element(
      "li",
      {},
      element("a", { href: linkToOperation(operation.id) }, ...showEndpoint(operation)),
      element("span", { class: "summary" }, ...showTitle(operation)),
    ),
  );
  const list = element("ul", {}, ...items);
  return element(
    "section",
    { class: "group" },
    element("h2", {}, name),
    ...prose(description, group.description),
    list,
  );
}

/** Shows an operation's documentation, and the form that sends requests. */
export function operationView(description: Description, operation: Operation, connection: Connection): View {
  const content = [showOperation(description, operation, connection, "h1")];
  return { title: `${titleOf(operation)} · ${description.info.title}`, content };
}

function showOperation(
  description: Description,
  operation: Operation,
  connection: Connection,
  heading: "h1" | "h2",
): HTMLElement {
  const { procedure, tool } = operation.object["x-rpc"] ?? {};
  const [access, scopes = ""] = accessOf(description, operation.object) ?? [];
  const childHeading = heading === "h1" ? "h2" : "h3";
  const head = element(
    "header",
    {},
    element(heading, { id: "operation-title", tabindex: "-1" }, ...showTitle(operation)),
    element("p", { class: "line" }, ...showEndpoint(operation)),
    ...(procedure === undefined ? [] : [note("RPC ", element("code", {}, procedure.slice(1)))]),
    ...(tool === undefined ? [] : [note("MCP tool ", element("code", {}, tool))]),
    ...(access === undefined ? [] : [note(access, ...(scopes === "" ? [] : [element("code", {}, scopes)]))]),
  );
  const columns = element(
    "div",
    { class: "columns" },
    showReference(description, operation.object, childHeading),
    showTryIt(description, operation, connection, childHeading),
  );
  return element("article", { class: "operation", "aria-labelledby": "operation-title" }, head, columns);
}

/** Shows a component schema. */
export function schemaView(description: Description, name: string): View {
  const schema = { $ref: `#/components/schemas/${name}` };
  const example = exampleOf(description, { schema }, "readOnly");
  const exampleNode = terminal(...jsonText(JSON.stringify(example) ?? ""));
  const content = element(
    "article",
    { "aria-labelledby": "schema-title" },
    element("h1", { id: "schema-title", tabindex: "-1" }, name),
    ...prose(description, resolveSchema(description, schema).description),
    showFields(description, schema),
    ...(example === undefined ? [] : [element("h2", {}, "Example"), exampleNode]),
  );
  return { title: `${name} · ${description.info.title}`, content: [content] };
}

/** Maximum entries in a visible list. Longer lists are collapsed. */
const maxVisible = 8;

/** Shows an operation's parameters, body and responses. */
function showReference(description: Description, object: OperationObject, heading: "h2" | "h3"): HTMLElement {
  const titled = (title: string, content: readonly HTMLElement[]): HTMLElement[] =>
    content.length === 0 ? [] : [element("section", {}, element(heading, { class: "part" }, title), ...content)];
  return element(
    "div",
    { class: "reference" },
    ...(isOnlyName(object) ? [] : prose(description, object.description)),
    ...titled("Path parameters", showParameters(description, object, "path")),
    ...titled("Query parameters", showParameters(description, object, "query")),
    ...titled("Header fields", showParameters(description, object, "header")),
    ...titled("Body", showBody(description, object.requestBody?.content, "readOnly")),
    ...titled("Responses", showResponses(description, object)),
  );
}

// Without a comment, the description is the RPC's name, which the page already shows.
function isOnlyName({ description, "x-rpc": rpc }: OperationObject): boolean {
  return description === `The RPC \`${rpc?.procedure.slice(1).replace("/", ".")}\`.`;
}

function showParameters(description: Description, { parameters = [] }: OperationObject, place: string): HTMLElement[] {
  const parameterRows = parameters
    .filter((parameter) => parameter.in === place)
    .flatMap((parameter) => {
      const comment = prose(description, parameter.description);
      return definition(parameter.name, parameter.schema, parameter, comment);
    });
  return parameterRows.length === 0 ? [] : [limitLength(element("dl", {}, ...parameterRows), "parameters")];
}

function showResponses(description: Description, { responses }: OperationObject): HTMLElement[] {
  return Object.entries(responses).map(([status, response]) => {
    const isGood = status.startsWith("2");
    const body = showBody(description, response.content, "writeOnly");
    const head = [
      element("span", { class: isGood ? "badge" : "badge bad" }, status),
      ...prose(description, response.description),
    ];
    if (body.length === 0) return element("div", { class: "response" }, ...head, note("No body"));
    const details = element("details", { class: "response" }, element("summary", {}, ...head), ...body);
    // Error responses are collapsed, because they are similar in all operations.
    details.open = isGood || Object.keys(responses).length < 3;
    return details;
  });
}

function showBody(description: Description, content: Content | undefined, leftOut: LeftOut): HTMLElement[] {
  const main = mainMediaOf(content);
  if (main === undefined) return [];
  if (isBytes(main.media)) return [note("Bytes of any type")];
  const schema = main.media.schema ?? main.media.itemSchema ?? {};
  const types = Object.keys(content ?? {}).flatMap((type) => [element("code", {}, type), " "]);
  const example = exampleOf(description, main.media, leftOut);
  const hasFields = schema.$ref !== undefined || schema.properties !== undefined;
  return [
    note(isLines(main.type) ? "stream of " : "", ...showKind(schema), " as ", ...types),
    ...(hasFields ? [limitLength(showFields(description, schema), "fields")] : []),
    ...(example === undefined ? [] : [collapsible("Example", terminal(...jsonText(JSON.stringify(example))))]),
  ];
}

function limitLength(list: HTMLElement, what: string): HTMLElement {
  const count = [...list.children].filter(({ localName }) => localName === "dt").length;
  return count <= maxVisible ? list : collapsible(`All ${count} ${what}`, list);
}

/** Shows an operation's method, and its path with emphasized parameters. Long paths may wrap before a slash. */
export function showEndpoint({ method, path }: Operation): HTMLElement[] {
  const parts = path.split(/(\{[^}]*\})|(?=\/)/).filter((part) => part);
  const pathNodes = parts.flatMap((part) =>
    part.startsWith("{") ? [element("em", {}, part)] : [element("wbr"), part],
  );
  return [
    element("span", { class: `method ${method.toLowerCase()}` }, method),
    element("span", { class: "path" }, ...pathNodes),
  ];
}

/** Shows an operation's title, with a badge if the operation is deprecated. */
function showTitle(operation: Operation): (Node | string)[] {
  const deprecatedBadge = element("span", { class: "mark deprecated" }, "deprecated");
  return operation.object.deprecated === true ? [titleOf(operation), " ", deprecatedBadge] : [titleOf(operation)];
}

/** Shows an object's fields, or a short description of any other schema. */
function showFields(description: Description, schema: Schema): HTMLElement {
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
function definition(
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
function showKind(schema: Schema = {}): (Node | string)[] {
  return partsOf(schema).map(({ text, name }) =>
    name === undefined ? text : element("a", { href: linkToSchema(name) }, text),
  );
}
