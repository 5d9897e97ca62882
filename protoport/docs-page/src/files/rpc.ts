// Builds the JSON requests that gRPC tools send.
import type { Operation, Schema } from "./description.js";
import { filledIn, type Input } from "./filled-in.js";

/** A variable in a path template, or a wildcard outside a variable. */
interface Variable {
  /** The names in the variable's field path, or `undefined` for a wildcard outside a variable. */
  readonly field: readonly string[] | undefined;
  readonly pathTemplate: string;
  readonly wildcards: readonly string[];
}

type Fields = Record<string, unknown>;

/** Returns the variables in a google.api.http path template. Each wildcard in a variable is a path parameter. */
function variablesOf({ object }: Operation): Variable[] {
  const path = object["x-rpc"]?.path ?? "";
  return [...path.matchAll(/\{([^=}]+)(?:=([^}]*))?\}|\*\*?/g)].map(([whole, field, inside]) => {
    const pathTemplate = inside ?? (field === undefined ? whole : "*");
    const names = field?.split(".").map(decodeURIComponent);
    return { field: names, pathTemplate, wildcards: pathTemplate.match(/\*\*?/g) ?? [] };
  });
}

/** Returns the names of parameters that may match several path segments. */
export function parametersOfSegments(operation: Operation): ReadonlySet<string> {
  const wildcards = variablesOf(operation).flatMap((variable) => variable.wildcards);
  const names = pathParametersOf(operation).map(({ name }) => name);
  return new Set(names.filter((_, at) => wildcards[at] === "**"));
}

/**
 * Returns a request's messages as JSON. A stream has one message per line, and other requests have one message.
 *
 * @param bodies - JSON texts: one for each message of a stream, otherwise the body
 */
export function messagesOf(operation: Operation, input: Input, bodies: readonly string[]): string[] {
  const fields: Fields = {};
  for (const { name, schema, value, "x-field": names = name.split(".") } of filledIn(operation, input, "query")) {
    const isList = schema?.type === "array";
    const json = isList ? value.split("\n").map((each) => toJson(schema.items, each)) : toJson(schema, value);
    setField(fields, names, json);
  }
  for (const [field, value] of fieldsOfPath(operation, input)) setField(fields, field, value);
  const { body = "" } = operation.object["x-rpc"] ?? {};
  if (body === "" || bodies.length === 0) return [JSON.stringify(fields)];
  return bodies.map((text) => withBody(fields, body, text));
}

// JSON is combined as text, because numbers may have more digits than a JavaScript number.
function withBody(fields: Fields, body: string, text: string): string {
  if (body === "*") return joinObjects(JSON.stringify(fields), text);
  const { [body]: inside, ...others } = fields;
  const value = inside === undefined ? text : joinObjects(JSON.stringify(inside), text);
  return joinObjects(JSON.stringify(others), `{${JSON.stringify(body)}:${value}}`);
}

function joinObjects(...objects: readonly string[]): string {
  const members = objects.map((text) => text.trim().slice(1, -1).trim()).filter((text) => text !== "");
  return `{${members.join(",")}}`;
}

function fieldsOfPath(operation: Operation, { values }: Input): [readonly string[], unknown][] {
  const parameters = pathParametersOf(operation);
  return variablesOf(operation).flatMap(({ field, pathTemplate, wildcards }): [readonly string[], unknown][] => {
    const segmentNames = parameters.splice(0, wildcards.length);
    const [first] = segmentNames;
    const value = pathTemplate.replaceAll(/\*\*?/g, () => values.get(`path ${segmentNames.shift()?.name}`) ?? "");
    if (field === undefined || value === "") return [];
    return [[field, pathTemplate === "*" ? toJson(first?.schema, value) : value]];
  });
}

function pathParametersOf({ object }: Operation) {
  return (object.parameters ?? []).filter((parameter) => parameter.in === "path");
}

function setField(fields: Fields, [name = "", ...inner]: readonly string[], value: unknown): void {
  if (inner.length === 0) {
    fields[name] = value;
    return;
  }
  const earlierValue = fields[name];
  const message: Fields = { ...(typeof earlierValue === "object" ? earlierValue : {}) };
  setField(message, inner, value);
  fields[name] = message;
}

function toJson({ type, format }: Schema = {}, text: string): unknown {
  if (type === "boolean") return text === "true";
  // In proto3 JSON, 64-bit integers are strings.
  return type === "integer" && !format?.endsWith("64") ? Number(text) : text;
}
