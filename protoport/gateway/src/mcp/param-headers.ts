import { type DescField, type DescMessage, type JsonObject, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type Exchange, isToken, withCode } from "../http/index.ts";
import { hasObjectForm, jsonNameOf, quoteValue } from "../protobuf/index.ts";
import { requireSame } from "./revisions.ts";
import type { Tool } from "./tools.ts";

/** A request field that clients repeat in the header field `Mcp-Param-{name}`. */
interface ParamHeader {
  readonly field: DescField;
  readonly name: string;
}

/** Maximum characters in a name. Servers accept only a few kilobytes of header fields. */
const maxNameLength = 64;

/** The fields that clients repeat, by request message. */
export type ParamHeaders = ReadonlyMap<DescMessage, readonly ParamHeader[]>;

/**
 * Finds the fields that the option `paramHeaders` names in the tools' requests.
 *
 * @param isIncomplete - whether names of fields that do not exist are accepted
 * @throws Error for an unknown field, a field with another type, and an invalid or repeated name. Clients hide tools
 * with such a schema
 */
export function findParamHeaders(
  paramHeaders: Readonly<Record<string, string>>,
  tools: Iterable<Tool>,
  isIncomplete: boolean,
): ParamHeaders {
  const inputs = new Set([...tools].map(({ rpc }) => rpc.method.input).filter(hasObjectForm));
  const fields = new Map(
    [...inputs].flatMap((input) => input.fields.map((field) => [`${input.typeName}.${field.name}`, field])),
  );
  const found = new Map<DescMessage, ParamHeader[]>();
  for (const [fieldName, name] of Object.entries(paramHeaders)) {
    const field = fields.get(fieldName);
    if (field === undefined && isIncomplete) continue;
    const others = found.get(field?.parent as DescMessage) ?? [];
    const isRepeated = others.some((other) => other.name.toLowerCase() === name.toLowerCase());
    const problem =
      field === undefined
        ? "must be a field of a tool's request, not of a nested message"
        : typeOf(field) === undefined
          ? "must be a string, a boolean or an integer"
          : !isToken(name) || name.length > maxNameLength
            ? `must be the end of a header name with up to ${maxNameLength} characters, got ${quoteValue(name)}`
            : isRepeated
              ? `must have a name of its own, got ${JSON.stringify(name)}`
              : undefined;
    if (problem !== undefined) throw withCode(new Error(`paramHeaders: ${fieldName} ${problem}`), "ERR_OPTIONS");
    if (field !== undefined) found.set(field.parent, [...others, { field, name }]);
  }
  return found;
}

/** Adds `x-mcp-header` to the fields of a request's schema, also to fields that the schema had to omit. */
export function annotateSchema(
  schema: JsonObject,
  headers: readonly ParamHeader[] = [],
  jsonOptions: Parameters<typeof jsonNameOf>[1],
): JsonObject {
  if (headers.length === 0) return schema;
  const properties = Object(schema["properties"]);
  const annotated = headers.map(({ field, name }) => {
    const property = jsonNameOf(field, jsonOptions);
    return [property, { type: typeOf(field), ...properties[property], "x-mcp-header": name }];
  });
  return { ...schema, properties: { ...properties, ...Object.fromEntries(annotated) } };
}

/**
 * Checks that the header has the values of a request, so that a proxy that routes by the header sees what the RPC gets
 * (MCP 2026-07-28, "Server Behavior for Custom Headers"). A field that is not set may be missing in the header,
 * and so may the zero value of a field without presence.
 *
 * @throws ConnectError for a value that is missing or differs
 */
export function requireParamHeaders(
  exchange: Exchange,
  message: Message,
  input: DescMessage,
  headers: readonly ParamHeader[] = [],
): void {
  if (headers.length === 0) return;
  const reflected = reflect(input, message);
  for (const { field, name } of headers) {
    // Only strings, booleans and integers, by findParamHeaders.
    const value = `${reflected.get(field) as string | boolean | number | bigint}`;
    const headerName = `Mcp-Param-${name}`;
    const sent = exchange.get(headerName);
    if (sent === null && !reflected.isSet(field)) continue;
    // Integers are compared as numbers: `42.0` is 42.
    if (typeOf(field) === "integer" && sent?.replace(/\.0+$/, "") === value) continue;
    requireSame(exchange, headerName, value);
  }
}

/**
 * Returns the JSON Schema type of a field that a header may repeat. JSON has 64-bit integers as strings. Returns
 * `undefined` for other types, which MCP does not allow.
 */
function typeOf({ fieldKind, scalar }: DescField): "string" | "integer" | "boolean" | undefined {
  if (fieldKind !== "scalar") return undefined;
  if (scalar === ScalarType.BOOL) return "boolean";
  if (/(?:INT|FIXED)32$/.test(ScalarType[scalar])) return "integer";
  return scalar === ScalarType.STRING || ScalarType[scalar].endsWith("64") ? "string" : undefined;
}
