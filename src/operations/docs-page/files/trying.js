import { jsonSchemaOf, kindOf, resolveSchema } from "./description.js";
import { element } from "./element.js";
import { jsonText } from "./json-text.js";
import { curlOf, send, urlOf } from "./request.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./description.js").Parameter} Parameter
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control
 */

// The spelling of integers in path and query; a number field of the browser would accept 1e3.
const integerPattern = "0|-?[1-9][0-9]*";

/**
 * Shows the form that sends an operation, the same request for a shell, and the answer.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {() => string} token what the person has entered, or ""
 * @returns {HTMLElement}
 */
export function showTrying(description, operation, token) {
  const { method, object } = operation;
  const needsToken = (description.security ?? []).length > 0;
  const inputs = (object.parameters ?? []).map((parameter) => inputOf(description, operation, parameter));
  const body = bodyInput(operation);
  const curl = element("pre", { class: "terminal command", tabindex: "0" });
  const outcome = element("p", { class: "outcome", role: "status" });
  const details = element("div", { class: "details" });
  const button = element("button", { type: "submit" }, [`Send ${method}`]);
  const form = element("form", {}, [...inputs.map(({ field }) => field), ...(body ? [body.field] : []), button]);

  const request = () => {
    const values = new Map(inputs.map(({ key, control }) => [key, control.value.trim()]));
    return { url: urlOf(operation, values), body: body?.control.value.trim() || undefined };
  };
  const showCurl = () => {
    const { url, body: text } = request();
    curl.textContent = curlOf(method, url, { needsToken, body: text });
  };
  const sendForm = async () => {
    const { url, body: text } = request();
    button.disabled = true;
    try {
      const answer = await send(method, url, { token: token(), body: text });
      outcome.replaceChildren(...showOutcome(operation, answer));
      details.replaceChildren(...showDetails(answer));
    } catch {
      // Browsers do not tell pages why.
      outcome.replaceChildren(
        element("span", { class: "badge bad" }, ["no answer"]),
        "The server could not be reached.",
      );
      details.replaceChildren();
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener("input", showCurl);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void sendForm();
  });
  showCurl();
  return element("div", { class: "trying" }, [
    element("h3", {}, ["Try it"]),
    form,
    outcome,
    details,
    element("h3", {}, ["In a shell"]),
    curl,
    ...copyButton(curl),
  ]);
}

/**
 * @param {Description} description
 * @param {Operation} operation
 * @param {Parameter} parameter
 */
function inputOf(description, { object }, { name, schema, required, in: place }) {
  const id = `${object.operationId}-${place}-${name}`;
  const resolved = resolveSchema(description, schema);
  const control = controlOf(resolved, id);
  if (required) control.required = true;
  const kind = element("span", { class: "note" }, [` ${kindOf(description, schema)}`]);
  const label = element("label", { for: id }, [name, kind]);
  return { key: `${place} ${name}`, control, field: element("div", { class: "field" }, [label, control]) };
}

/**
 * @param {import("./description.js").Schema} schema
 * @param {string} id
 * @returns {Control}
 */
function controlOf(schema, id) {
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  if (choices !== undefined) {
    const options = ["", ...choices].map((choice) => element("option", { value: choice }, [choice]));
    return element("select", { id }, options);
  }
  if (schema.type === "array") return element("textarea", { id, rows: "3", spellcheck: "false" });
  const input = element("input", { id, autocomplete: "off", spellcheck: "false" });
  if (schema.type === "integer") {
    input.inputMode = "numeric";
    input.pattern = integerPattern;
    input.title = "An integer without leading zeros";
  }
  return input;
}

/** @param {Operation} operation */
function bodyInput({ object }) {
  if (jsonSchemaOf(object.requestBody?.content) === undefined) return undefined;
  const id = `${object.operationId}-body`;
  const control = element("textarea", { id, spellcheck: "false" });
  return {
    control,
    field: element("div", { class: "field" }, [element("label", { for: id }, ["Body, JSON"]), control]),
  };
}

/** @typedef {Awaited<ReturnType<typeof send>>} Answer */

/**
 * @param {Operation} operation
 * @param {Answer} answer
 */
function showOutcome({ object }, { status, durationMs }) {
  const meaning = object.responses[String(status)] ?? object.responses["default"];
  const isGood = status >= 200 && status < 300;
  return [
    element("span", { class: isGood ? "badge" : "badge bad" }, [String(status)]),
    meaning?.description ?? "",
    element("span", { class: "note" }, [`${durationMs.toFixed(0)} ms`]),
  ];
}

/** @param {Answer} answer */
function showDetails({ headers, text }) {
  const isJson = headers.some(([name, value]) => name === "content-type" && value.startsWith("application/json"));
  const fields = headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  return [
    element("p", { class: "note" }, [text === "" ? "No body" : "Body"]),
    ...(text === "" ? [] : [element("pre", { class: "terminal" }, isJson ? jsonText(text) : [text])]),
    element("p", { class: "note" }, ["Header fields"]),
    element("pre", { class: "terminal" }, [fields]),
  ];
}

/** @param {HTMLElement} source */
function copyButton(source) {
  // Over plain http, browsers only offer the clipboard to pages of the same machine.
  if (!("clipboard" in navigator)) return [];
  const button = element("button", { type: "button", class: "quiet copy" }, ["Copy"]);
  const copy = async () => {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  };
  button.addEventListener("click", () => void copy());
  return [button];
}
