import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import type { RestBinding } from "../../../src/gateway/rest/index.ts";
import type { HttpRequest } from "../carriers/exchange.ts";

/**
 * Writes a message as a request of a binding, from the rule and proto3 JSON alone: a second reading of
 * google/api/http.proto, to hold the server's against.
 *
 * Takes messages that the rule can carry: the path's fields set, nothing in the query that has no text form.
 */
export function toRestRequest(binding: RestBinding, message: Message): HttpRequest {
  const { template, pattern, method } = binding;
  const json = toObject(toJson(method.input, message));
  const segments = template.segments.map((segment) =>
    encodeURIComponent(segment.kind === "literal" ? segment.text : ""),
  );
  for (const variable of template.variables) {
    const text = toText(take(json, variable.fieldPath, method.input));
    const isMulti = variable.end - variable.start > 1 || template.segments[variable.start]?.kind === "**";
    segments.splice(
      variable.start,
      variable.end - variable.start,
      isMulti ? encodeSegments(text) : encodeURIComponent(text),
    );
  }
  const path = `/${segments.join("/")}${template.verb === undefined ? "" : `:${template.verb}`}`;
  const { body, query } = splitBody(json, pattern.body, method.input);
  const target = query.length === 0 ? path : `${path}?${query.join("&")}`;
  const head = { httpMethod: pattern.httpMethod, path: target };
  if (body === undefined) return { ...head, header: [] };
  return {
    ...head,
    header: [["content-type", "application/json"]],
    body: new TextEncoder().encode(JSON.stringify(body)),
  };
}

function splitBody(
  json: JsonObject,
  body: string,
  input: DescMessage,
): { readonly body: JsonValue | undefined; readonly query: readonly string[] } {
  if (body === "*") return { body: json, query: [] };
  const value = body === "" ? undefined : take(json, [body], input);
  return { body: value, query: toParameters(json, "") };
}

// JSON leaves a zero out; of the types that paths are tested with here, only integers have one in a path.
function toText(value: JsonValue | undefined): string {
  if (value === undefined) return "0";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

// Removes a field, named as in a rule, from a message's JSON.
function take(json: JsonObject, fieldPath: readonly string[], message: DescMessage): JsonValue | undefined {
  const [name = "", ...rest] = fieldPath;
  const field = fieldOf(message, name);
  const value = json[field.jsonName];
  if (rest.length > 0 && field.message !== undefined) return take(toObject(value ?? {}), rest, field.message);
  delete json[field.jsonName];
  return value;
}

function fieldOf(message: DescMessage, name: string): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${name} is no field of ${message.typeName}`);
  return field;
}

function toParameters(value: JsonValue, name: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => toParameters(item, name));
  if (typeof value !== "object" || value === null) {
    return [`${encodeURIComponent(name)}=${encodeURIComponent(toText(value))}`];
  }
  return Object.entries(value).flatMap(([key, inner]) => toParameters(inner, name === "" ? key : `${name}.${key}`));
}

// google/api/http.proto: in a value of several segments a slash stays, and an escaped one stays escaped.
function encodeSegments(text: string): string {
  return text
    .split("/")
    .map((segment) => encodeURIComponent(segment))
    .join("/");
}

function toObject(value: JsonValue): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error("not an object");
}
