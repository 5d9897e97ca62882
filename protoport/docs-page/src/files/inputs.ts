import {
  type Description,
  isBytes,
  isLines,
  mainMediaOf,
  type OperationObject,
  type Parameter,
  resolveSchema,
  type Schema,
} from "./description.js";
import { element, collapsible } from "./element.js";
import { exampleOf } from "./example.js";
import type { Input } from "./filled-in.js";
import { kindOf } from "./kinds.js";

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** A form's fields, and their values. */
export interface Inputs {
  readonly fields: readonly HTMLElement[];
  readonly read: () => Partial<Input>;
}

const noInputs: Inputs = { fields: [], read: () => ({}) };

/** The pattern for integers in a text field. A number field would accept 1e3. */
const integerPattern = "0|-?[1-9][0-9]*";

/** The pattern that the gateway's descriptions use for a parameter with one path segment. */
const segmentPattern = "^[^/]+$";

/** Maximum number of optional parameters to show. If there are more, all optional parameters are collapsed. */
const maxVisible = 6;

/** Maximum number of visible rows in the body field. */
const maxBodyRows = 18;

/** Creates the fields for an operation's parameters. Required parameters come first. */
export function parameterInputs(description: Description, { parameters = [] }: OperationObject): Inputs {
  const inputs = parameters.map((parameter) => inputOf(description, parameter));
  const needed = inputs.filter(({ control }) => control.required).map(({ field }) => field);
  const optionalFields = inputs.filter(({ control }) => !control.required).map(({ field }) => field);
  const optionalNodes =
    optionalFields.length <= maxVisible
      ? optionalFields
      : [collapsible(`${optionalFields.length} more parameters`, ...optionalFields)];
  return {
    fields: [...needed, ...optionalNodes],
    read: () => ({ values: new Map(inputs.map(({ key, control }) => [key, control.value.trim()])) }),
  };
}

/** Creates the field for the body. A binary body is a file, and a JSON body is initially an example. */
export function bodyInputs(description: Description, { requestBody }: OperationObject): Inputs {
  const main = mainMediaOf(requestBody?.content);
  if (main === undefined) return noInputs;
  if (isBytes(main.media)) return fileInputs();
  const control = element("textarea", { id: "body", spellcheck: "false" });
  control.required = requestBody?.required === true;
  const hasLines = isLines(main.type);
  const example = exampleOf(description, main.media, "readOnly");
  if (example !== undefined) control.value = JSON.stringify(example, undefined, hasLines ? undefined : 2);
  control.rows = Math.min(control.value.split("\n").length + 1, maxBodyRows);
  return {
    fields: [withLabel(control, hasLines ? "Body, one JSON message per line" : "Body, JSON")],
    read: () => ({ body: control.value.trim() || undefined, contentType: main.type }),
  };
}

function fileInputs(): Inputs {
  const file = element("input", { id: "body", type: "file" });
  const type = element("input", { id: "content-type", autocomplete: "off", spellcheck: "false" });
  // Before the form's listener for "input", which shows the content type in the command.
  file.addEventListener("input", () => (type.value = file.files?.[0]?.type || "application/octet-stream"));
  return {
    fields: [withLabel(file, "Body, a file"), withLabel(type, "Content type")],
    read: () => ({ body: file.files?.[0], contentType: type.value.trim() }),
  };
}

/**
 * Creates a selection field if the response has several media types. The default for streams is a type whose messages
 * are shown as they arrive.
 */
export function acceptInputs({ responses }: OperationObject): Inputs {
  const successStatus = Object.keys(responses).find((status) => status.startsWith("2")) ?? "default";
  const content = responses[successStatus]?.content ?? {};
  const types = Object.keys(content);
  if (types.length < 2) return noInputs;
  const control = createSelect("accept", types);
  control.value = mainMediaOf(content)?.type ?? "";
  return { fields: [withLabel(control, "Response format")], read: () => ({ accept: control.value }) };
}

function inputOf(description: Description, { name, schema, required = false, in: place }: Parameter) {
  const control = controlOf(resolveSchema(description, schema), `${place}-${name}`);
  control.required = required;
  const kind = element("span", { class: "note" }, ` ${kindOf(schema)}${required ? "" : ", optional"}`);
  return { key: `${place} ${name}`, control, field: withLabel(control, name, kind) };
}

function controlOf(schema: Schema, id: string): Control {
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  if (choices !== undefined) return createSelect(id, ["", ...choices]);
  if (schema.type === "array") {
    return element("textarea", { id, rows: "2", class: "short", spellcheck: "false", placeholder: "One per line" });
  }
  const input = element("input", { id, autocomplete: "off", spellcheck: "false" });
  if (schema.type === "integer") {
    input.inputMode = "numeric";
    input.pattern = integerPattern;
    input.title = "An integer without leading zeros";
  }
  if (schema.pattern === segmentPattern) {
    input.pattern = String.raw`[^\/]+`;
    input.title = "One path segment, without slashes";
  }
  return input;
}

/** Creates a select element. */
export function createSelect(id: string, choices: readonly string[]): HTMLSelectElement {
  return element("select", { id }, ...choices.map((choice) => element("option", {}, choice)));
}

function withLabel(control: Control, ...label: readonly (Node | string)[]): HTMLElement {
  return element("div", { class: "field" }, element("label", { for: control.id }, ...label), control);
}
