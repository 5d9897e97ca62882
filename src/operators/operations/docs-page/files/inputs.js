import { isLines, mainMediaOf, resolveSchema } from "./description.js";
import { element } from "./element.js";
import { exampleOf } from "./example.js";
import { kindOf } from "./schema-kind.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./description.js").Parameter} Parameter
 * @typedef {import("./description.js").Schema} Schema
 * @typedef {import("./request.js").Input} Input
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control
 * @typedef {{ fields: HTMLElement[], read: () => Partial<Input> }} Inputs fields of a form, and their values
 */

// The spelling of integers in path and query; a number field of the browser would accept 1e3.
const integerPattern = "0|-?[1-9][0-9]*";

// The pattern of a parameter that is one segment of the path, in a description of ours; the browser wants the slash
// escaped.
const segmentPattern = "^[^/]+$";

// More optional parameters than these are folded away.
const shownAtOnce = 6;

// A longer body is scrolled.
const bodyRowsMax = 18;

/**
 * Creates the fields for the parameters of an operation, the required ones first.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @returns {Inputs}
 */
export function parameterInputs(description, { object }) {
  const inputs = (object.parameters ?? []).map((parameter) => inputOf(description, parameter));
  const needed = inputs.filter(({ control }) => control.required).map(({ field }) => field);
  const others = inputs.filter(({ control }) => !control.required).map(({ field }) => field);
  const summary = element("summary", {}, [`${others.length} more parameters`]);
  const more = others.length <= shownAtOnce ? others : [element("details", {}, [summary, ...others])];
  return {
    fields: [...needed, ...more],
    read: () => ({ values: new Map(inputs.map(({ key, control }) => [key, control.value.trim()])) }),
  };
}

/**
 * Creates the field for the body: a file for bytes, otherwise JSON that starts as an example.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @returns {Inputs}
 */
export function bodyInputs(description, { object: { requestBody } }) {
  const main = mainMediaOf(requestBody?.content);
  if (main === undefined) return { fields: [], read: () => ({}) };
  if (main.type === "*/*") return fileInputs();
  const control = element("textarea", { id: "body", spellcheck: "false" });
  control.required = requestBody?.required === true;
  const example = exampleOf(description, main.media, "readOnly");
  const hasLines = isLines(main.type);
  if (example !== undefined) control.value = hasLines ? JSON.stringify(example) : JSON.stringify(example, undefined, 2);
  control.rows = Math.min(control.value.split("\n").length + 1, bodyRowsMax);
  const label = hasLines ? "Body, a JSON message on each line" : "Body, JSON";
  return {
    fields: [labelled("body", [label], control)],
    read: () => ({ body: control.value.trim() || undefined, contentType: main.type }),
  };
}

/** @returns {Inputs} */
function fileInputs() {
  const file = element("input", { id: "body", type: "file" });
  const type = element("input", { id: "content-type", autocomplete: "off", spellcheck: "false" });
  file.addEventListener("change", () => (type.value = file.files?.[0]?.type || "application/octet-stream"));
  return {
    fields: [labelled("body", ["Body, a file"], file), labelled("content-type", ["Content type"], type)],
    read: () => ({ body: file.files?.[0], contentType: type.value.trim() }),
  };
}

/**
 * Creates the choice of a media type for an answer that has several.
 *
 * @param {Operation} operation
 * @returns {Inputs}
 */
export function acceptInputs({ object: { responses } }) {
  const good = Object.keys(responses).find((status) => status.startsWith("2")) ?? "default";
  const types = Object.keys(responses[good]?.content ?? {});
  if (types.length < 2) return { fields: [], read: () => ({}) };
  const control = choose("accept", types);
  return { fields: [labelled("accept", ["Answer as"], control)], read: () => ({ accept: control.value }) };
}

/**
 * @param {Description} description
 * @param {Parameter} parameter
 */
function inputOf(description, { name, schema, required, in: place }) {
  const id = `${place}-${name}`;
  const control = controlOf(resolveSchema(description, schema), id);
  if (required) control.required = true;
  const kind = element("span", { class: "note" }, [` ${kindOf(schema)}${required ? "" : ", optional"}`]);
  return { key: `${place} ${name}`, control, field: labelled(id, [name, kind], control) };
}

/**
 * @param {Schema} schema
 * @param {string} id
 * @returns {Control}
 */
function controlOf(schema, id) {
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  if (choices !== undefined) return choose(id, ["", ...choices]);
  if (schema.type === "array") {
    return element("textarea", { id, rows: "2", class: "short", spellcheck: "false", placeholder: "One on each line" });
  }
  const input = element("input", { id, autocomplete: "off", spellcheck: "false" });
  if (schema.type === "integer") {
    input.inputMode = "numeric";
    input.pattern = integerPattern;
    input.title = "An integer without leading zeros";
  }
  if (schema.pattern === segmentPattern) {
    input.pattern = "[^\\/]+";
    input.title = "One segment of the path, without slashes";
  }
  return input;
}

/**
 * @param {string} id
 * @param {string[]} choices
 */
function choose(id, choices) {
  return element(
    "select",
    { id },
    choices.map((choice) => element("option", { value: choice }, [choice])),
  );
}

/**
 * @param {string} id
 * @param {(Node | string)[]} label
 * @param {Control} control
 */
function labelled(id, label, control) {
  return element("div", { class: "field" }, [element("label", { for: id }, label), control]);
}
