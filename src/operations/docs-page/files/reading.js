import { jsonSchemaOf, kindOf, resolveSchema } from "./description.js";
import { element } from "./element.js";
import { prose } from "./prose.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./description.js").Schema} Schema
 */

/**
 * Shows the parameters, the body and the responses of an operation.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @returns {HTMLElement}
 */
export function showReading(description, { object }) {
  const parameters = object.parameters ?? [];
  const body = jsonSchemaOf(object.requestBody?.content);
  return element("div", { class: "reading" }, [
    ...titled("Description", prose(object.description)),
    ...titled(
      "Parameters",
      parameters.flatMap((parameter) =>
        definition(
          parameter.name,
          [kindOf(description, parameter.schema), parameter.in, ...(parameter.required ? ["required"] : [])],
          prose(parameter.description),
        ),
      ),
      "dl",
    ),
    ...titled("Body", body === undefined ? [] : [showFields(description, body)]),
    ...titled("Answers", showAnswers(description, object), "dl"),
  ]);
}

/**
 * @param {Description} description
 * @param {Operation["object"]} object
 */
function showAnswers(description, object) {
  return Object.entries(object.responses).flatMap(([status, response]) => {
    const schema = jsonSchemaOf(response.content);
    const badge = element("span", { class: status.startsWith("2") ? "badge" : "badge bad" }, [status]);
    const kind = element("span", { class: "kind" }, [schema === undefined ? "no body" : "application/json"]);
    const fields = schema === undefined ? [] : [showFields(description, schema)];
    return [element("dt", {}, [badge, kind]), element("dd", {}, [...prose(response.description), ...fields])];
  });
}

/**
 * @param {Description} description
 * @param {Schema} schema
 */
function showFields(description, schema) {
  const { properties, required = [] } = resolveSchema(description, schema);
  if (properties === undefined) return element("p", {}, [element("code", {}, [kindOf(description, schema)])]);
  return element(
    "dl",
    {},
    Object.entries(properties).flatMap(([name, property]) =>
      definition(
        name,
        [kindOf(description, property), ...(required.includes(name) ? ["required"] : [])],
        prose(resolveSchema(description, property).description),
      ),
    ),
  );
}

/**
 * @param {string} name
 * @param {string[]} facts
 * @param {HTMLElement[]} about
 */
function definition(name, facts, about) {
  return [element("dt", {}, [name, element("span", { class: "kind" }, [facts.join(" · ")])]), element("dd", {}, about)];
}

/**
 * @param {string} title
 * @param {HTMLElement[]} content
 * @param {"div" | "dl"} list
 */
function titled(title, content, list = "div") {
  return content.length === 0 ? [] : [element("h3", {}, [title]), element(list, {}, content)];
}
