import { isLines, mainMediaOf } from "./description.js";
import { element } from "./element.js";
import { exampleOf } from "./example.js";
import { definition, showFields } from "./fields.js";
import { jsonText } from "./json-text.js";
import { prose } from "./prose.js";
import { showKind } from "./schema-kind.js";

/**
 * @typedef {import("./description.js").Content} Content
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./description.js").Parameter} Parameter
 * @typedef {import("./example.js").Mark} Mark
 */

// A longer list is folded away.
const shownAtOnce = 8;

/**
 * Shows the parameters, the body and the answers of an operation.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {"h2" | "h3"} heading
 * @returns {HTMLElement}
 */
export function showReading(description, { object }, heading) {
  const parameters = object.parameters ?? [];
  const titled = (/** @type {string} */ title, /** @type {HTMLElement[]} */ content) =>
    content.length === 0 ? [] : [element("section", {}, [element(heading, { class: "part" }, [title]), ...content])];
  return element("div", { class: "reading" }, [
    ...(isOnlyName(object) ? [] : prose(object.description)),
    ...titled("Parameters of the path", showParameters(parameters.filter((parameter) => parameter.in === "path"))),
    ...titled("Parameters of the query", showParameters(parameters.filter((parameter) => parameter.in === "query"))),
    ...titled("Header fields", showParameters(parameters.filter((parameter) => parameter.in === "header"))),
    ...titled("Body", showBody(description, object.requestBody?.content, "readOnly")),
    ...titled("Answers", showAnswers(description, object)),
  ]);
}

// An RPC without a comment is described by its name, which the page shows above.
/** @param {Operation["object"]} object */
function isOnlyName({ description, "x-rpc": rpc }) {
  return description === `The RPC \`${rpc?.procedure.slice(1).replace("/", ".")}\`.`;
}

/** @param {Parameter[]} parameters */
function showParameters(parameters) {
  if (parameters.length === 0) return [];
  const list = element(
    "dl",
    {},
    parameters.flatMap(({ name, schema, required, deprecated, description }) =>
      definition(
        name,
        showKind(schema),
        [...(required ? ["required"] : []), ...(deprecated ? ["deprecated"] : [])],
        prose(description),
      ),
    ),
  );
  return [limited(list, "parameters")];
}

/**
 * @param {Description} description
 * @param {Operation["object"]} object
 */
function showAnswers(description, { responses }) {
  return Object.entries(responses).map(([status, response]) => {
    const isGood = status.startsWith("2");
    const body = showBody(description, response.content, "writeOnly");
    const head = [element("span", { class: isGood ? "badge" : "badge bad" }, [status]), ...prose(response.description)];
    if (body.length === 0) return element("div", { class: "answer" }, [...head, note("No body")]);
    const details = element("details", { class: "answer" }, [element("summary", {}, head), ...body]);
    // Folded away, because errors are much the same in every operation.
    details.open = isGood || Object.keys(responses).length < 3;
    return details;
  });
}

/**
 * @param {Description} description
 * @param {Content | undefined} content
 * @param {Mark} leftOut
 */
function showBody(description, content, leftOut) {
  const main = mainMediaOf(content);
  if (main === undefined) return [];
  const schema = main.media.schema ?? main.media.itemSchema ?? {};
  const types = Object.keys(content ?? {}).map((type) => element("code", {}, [type]));
  const example = exampleOf(description, main.media, leftOut);
  if (main.type === "*/*") return [note("Bytes of any type")];
  return [
    element("p", { class: "note" }, [
      isLines(main.type) ? "stream of " : "",
      ...showKind(schema),
      " as ",
      ...types.flatMap((type) => [type, " "]),
    ]),
    ...(schema.$ref === undefined && schema.properties === undefined
      ? []
      : [limited(showFields(description, schema), "fields")]),
    ...(example === undefined ? [] : [showExample(example)]),
  ];
}

/**
 * @param {HTMLElement} list
 * @param {string} what
 */
function limited(list, what) {
  const count = [...list.children].filter(({ localName }) => localName === "dt").length;
  if (count <= shownAtOnce) return list;
  return element("details", {}, [element("summary", {}, [`All ${count} ${what}`]), list]);
}

/** @param {unknown} example */
function showExample(example) {
  return element("details", { class: "example" }, [
    element("summary", {}, ["Example"]),
    element("pre", { class: "terminal", tabindex: "0", "aria-label": "Example" }, jsonText(JSON.stringify(example))),
  ]);
}

/** @param {string} text */
function note(text) {
  return element("p", { class: "note" }, [text]);
}
