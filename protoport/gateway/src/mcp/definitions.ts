import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { refusePromise, runSteps, toUtf8 } from "../http/index.ts";
import { cleanText, commentOf, type Comments, commentsOf, createMessageSchema } from "../openapi/index.ts";
import { type ProtocolParts, selectorOf } from "../protocols/index.ts";
import type { McpOptions, McpToolHints } from "./options.ts";
import { annotateSchema, type ParamHeaders } from "./param-headers.ts";
import type { Tool } from "./tools.ts";

/** Maximum bytes of all cached definitions, enough for 5,000. Further definitions are created at each use. */
const maxKeptBytes = 16 * 1024 * 1024;

/** Maximum characters in a description, about a page. A model reads all descriptions in its limited context. */
const maxDescription = 4_000;

/** Maximum characters in a title. A title is one line in a list. */
const maxTitle = 200;

interface ToolDefinition {
  /** The JSON text, preceded by a comma. */
  readonly json: Uint8Array;
  /** Number of fields and enum values that the schemas took to describe. */
  readonly fields: number;
}

/** Returns a function that describes tools. Each definition is created on its first use. */
export function createDefinitions(
  options: McpOptions,
  { restRoutes }: ProtocolParts,
  tools: ReadonlyMap<string, Tool>,
  paramHeaders: ParamHeaders,
): (tool: Tool) => ToolDefinition {
  const services = [...tools.values()].map(({ rpc }) => rpc.method.parent);
  const comments = options.comments ?? runSteps(commentsOf(services));
  const bindings = Map.groupBy(restRoutes.bindings, ({ method }) => method);
  const kept = new Map<Tool, ToolDefinition>();
  let keptBytes = 0;
  return (tool) => {
    const known = kept.get(tool);
    if (known !== undefined) return known;
    const httpMethods = (bindings.get(tool.rpc.method) ?? []).map(({ pattern }) => pattern.httpMethod);
    const definition = describeTool(tool, httpMethods, { ...options, comments }, paramHeaders);
    keptBytes += definition.json.byteLength;
    if (keptBytes <= maxKeptBytes) kept.set(tool, definition);
    return definition;
  };
}

type Documented = McpOptions & { readonly comments: Comments };

function describeTool(
  { name, rpc, options }: Tool,
  httpMethods: readonly string[],
  documented: Documented,
  paramHeaders: ParamHeaders,
): ToolDefinition {
  const { kind, method } = rpc;
  const { comments, validation: rules } = documented;
  const style = { comments, useProtoFieldName: rpc.options.jsonOptions?.useProtoFieldName ?? false };
  const isClosed = rpc.codecs.json.refusesUnknownFields;
  const input = createMessageSchema(method.input, { ...style, rules, isClosed, direction: "input" });
  const isStream = kind === "stream";
  const output = createMessageSchema(method.output, { ...style, isStream, direction: "output" });
  const text = options.description ?? commentOf(comments, method) ?? `The RPC ${selectorOf(method)}.`;
  const scopes = refusePromise(documented.scopesOf?.(method), "scopesOf must be synchronous");
  const definition = {
    name,
    title: cleanText(options.title ?? nameWordsOf(method.name), maxTitle),
    description: cleanText(text, maxDescription),
    inputSchema: annotateSchema(input.schema, paramHeaders.get(method.input), style),
    outputSchema: output.schema,
    _meta: scopes && { securitySchemes: [{ type: "oauth2", scopes }] },
    annotations: annotationsOf({ ...hintsOf(method, httpMethods), ...options.hints }),
  };
  return { json: toUtf8(`,${JSON.stringify(definition)}`), fields: input.fields + output.fields };
}

function hintsOf({ idempotency }: DescMethod, httpMethods: readonly string[]): McpToolHints {
  const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;
  // DELETE is checked first, because a definition with both DELETE and NO_SIDE_EFFECTS is contradictory.
  if (httpMethods.includes("DELETE")) return { destructive: true, idempotent: true };
  if (idempotency === NO_SIDE_EFFECTS || httpMethods.some((name) => name === "GET" || name === "QUERY")) {
    return { readOnly: true };
  }
  return idempotency === IDEMPOTENT || httpMethods.includes("PUT") ? { idempotent: true } : {};
}

/** JSON.stringify omits undefined annotations. */
function annotationsOf({ readOnly, destructive, idempotent, openWorld }: McpToolHints): object {
  return { readOnlyHint: readOnly, destructiveHint: destructive, idempotentHint: idempotent, openWorldHint: openWorld };
}

/** `GetHTTPRule` becomes "Get HTTP Rule". */
function nameWordsOf(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").replaceAll("_", " ");
}
