import { type Content, type Description, isBytes, isLines, mainMediaOf, type OperationObject } from "./description.js";
import { element, collapsible, note, terminal } from "./element.js";
import { exampleOf, type LeftOut } from "./example.js";
import { definition, showFields, showKind } from "./fields.js";
import { jsonText } from "./json-text.js";
import { prose } from "./prose.js";

/** Maximum entries in a visible list. Longer lists are collapsed. */
const visibleMax = 8;

/** Shows an operation's parameters, body and responses. */
export function showReference(description: Description, object: OperationObject, heading: "h2" | "h3"): HTMLElement {
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
  return count <= visibleMax ? list : collapsible(`All ${count} ${what}`, list);
}
