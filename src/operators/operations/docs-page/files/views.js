// The views of the page: the overview, an operation, a schema.
import { groupsOf, operationsOf, resolveSchema, titleOf } from "./description.js";
import { element } from "./element.js";
import { showMethod, showPath } from "./endpoint.js";
import { exampleOf } from "./example.js";
import { showFields } from "./fields.js";
import { jsonText } from "./json-text.js";
import { prose } from "./prose.js";
import { showReading } from "./reading.js";
import { linkToOperation } from "./route.js";
import { showTrying } from "./trying.js";

/**
 * @typedef {import("./connection.js").Connection} Connection
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {{ title: string, content: HTMLElement[] }} View
 */

/**
 * Shows the whole interface: what it is, and what can be done with it. An interface of one operation needs no list: the
 * operation is shown itself.
 *
 * @param {Description} description
 * @param {Connection} connection
 * @returns {View}
 */
export function overview(description, connection) {
  const { info } = description;
  const operations = operationsOf(description);
  const { name = "", url, email } = info.contact ?? {};
  const href = url ?? (email === undefined ? undefined : `mailto:${email}`);
  const contact = href === undefined ? name : element("a", { href, rel: "noreferrer" }, [name || href]);
  const licence = info.license === undefined ? "" : `${info.license.name} licence`;
  const facts = [`Version ${info.version}`, licence, contact].filter((fact) => fact !== "" && fact !== info.title);
  const head = element("header", { class: "about" }, [
    element("h1", { tabindex: "-1" }, [info.title]),
    element(
      "p",
      { class: "note" },
      facts.flatMap((fact, at) => (at === 0 ? [fact] : [" · ", fact])),
    ),
    ...prose(info.description),
  ]);
  const only = operations.length === 1 ? operations : [];
  return {
    title: `${info.title} ${info.version}`,
    content: [
      head,
      ...only.map((operation) => showOperation(description, operation, connection, "h2")),
      ...(only.length > 0 ? [] : groupsOf(description).map(showGroup)),
    ],
  };
}

/** @param {import("./description.js").Group} group */
function showGroup({ name, description, operations }) {
  return element("section", { class: "group" }, [
    element("h2", {}, [name]),
    ...prose(description),
    element(
      "ul",
      {},
      operations.map((operation) =>
        element("li", {}, [
          element("a", { href: linkToOperation(operation.id) }, [showMethod(operation), showPath(operation)]),
          element("span", { class: "summary" }, [titleOf(operation), ...showDeprecated(operation)]),
        ]),
      ),
    ),
  ]);
}

/**
 * Shows an operation: what it is, and the form that sends it.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {Connection} connection
 * @returns {View}
 */
export function operationView(description, operation, connection) {
  const content = [showOperation(description, operation, connection, "h1")];
  return { title: `${titleOf(operation)} · ${description.info.title}`, content };
}

/**
 * @param {Description} description
 * @param {Operation} operation
 * @param {Connection} connection
 * @param {"h1" | "h2"} heading
 */
function showOperation(description, operation, connection, heading) {
  const { procedure } = operation.object["x-rpc"] ?? {};
  const below = heading === "h1" ? "h2" : "h3";
  const rpc = procedure === undefined ? [] : ["RPC ", element("code", {}, [procedure.slice(1)])];
  return element("article", { class: "operation", "aria-labelledby": "operation-title" }, [
    element("header", {}, [
      element(heading, { id: "operation-title", tabindex: "-1" }, [titleOf(operation), ...showDeprecated(operation)]),
      element("p", { class: "line" }, [showMethod(operation), showPath(operation)]),
      element("p", { class: "note" }, rpc),
    ]),
    element("div", { class: "columns" }, [
      showReading(description, operation, below),
      showTrying(description, operation, connection, below),
    ]),
  ]);
}

/** @param {Operation} operation */
function showDeprecated({ object }) {
  return object.deprecated === true ? [" ", element("span", { class: "mark deprecated" }, ["deprecated"])] : [];
}

/**
 * Shows a schema of the components.
 *
 * @param {Description} description
 * @param {string} name
 * @returns {View}
 */
export function schemaView(description, name) {
  const schema = { $ref: `#/components/schemas/${name}` };
  const example = exampleOf(description, { schema }, "readOnly");
  const content = element("article", { class: "schema", "aria-labelledby": "schema-title" }, [
    element("h1", { id: "schema-title", tabindex: "-1" }, [name]),
    ...prose(resolveSchema(description, schema).description),
    showFields(description, schema),
    ...(example === undefined ? [] : [element("h2", {}, ["Example"]), showJson(example)]),
  ]);
  return { title: `${name} · ${description.info.title}`, content: [content] };
}

/** @param {unknown} value */
function showJson(value) {
  return element("pre", { class: "terminal", tabindex: "0" }, jsonText(JSON.stringify(value)));
}
