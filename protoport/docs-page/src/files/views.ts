import type { Connection } from "./connection.js";
import {
  accessOf,
  type Description,
  type Group,
  groupsOf,
  type Operation,
  resolveSchema,
  titleOf,
} from "./description.js";
import { element, note, terminal } from "./element.js";
import { showEndpoint, showTitle } from "./endpoint.js";
import { exampleOf } from "./example.js";
import { showFields } from "./fields.js";
import { jsonText } from "./json-text.js";
import { prose } from "./prose.js";
import { showReference } from "./reference.js";
import { linkToOperation } from "./route.js";
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
