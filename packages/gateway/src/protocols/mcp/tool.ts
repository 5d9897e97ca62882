import type { DescMessage, DescMethod, JsonObject } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { hasCustomJsonRepresentation } from "../../messages/json/index.ts";
import { cleanText, commentOf, type Comments, createMessageSchema, type FieldRules } from "../../openapi/index.ts";
import type { Rpc } from "../index.ts";
import { selectorOf } from "../rest/rules/index.ts";
import type { McpToolHints, McpToolOptions } from "./options.ts";

/** The common inputs for describing tools. */
export interface DefinitionParts {
  readonly comments: Comments;
  readonly rules: FieldRules | undefined;
  /** Returns the HTTP methods of the rules of an RPC. */
  readonly httpMethodsOf: (method: DescMethod) => readonly string[];
}

/** The definition of a tool. */
export interface ToolDefinition {
  /** JSON text. */
  readonly text: string;
  /** Whether a schema is left out because it is too large. */
  readonly isAbridged: boolean;
}

/** Describes a schema that is left out. */
const tooLarge: JsonObject = { type: "object", description: "The schema is left out because it is too large." };

/** The most characters of a description. 4,000: about a page; all descriptions together fill the context of a model. */
const descriptionMax = 4_000;

/** The most characters of a title. 200: it is one line of a list. */
const titleMax = 200;

/** An RPC as a tool. */
export class Tool {
  readonly name: string;
  readonly rpc: Rpc;
  /** Whether the input, and the output, is in a member `value`, because its JSON is not an object. */
  readonly wrapsInput: boolean;
  readonly wrapsOutput: boolean;
  /** Whether arguments that the input does not have are refused. */
  readonly refusesUnknownFields: boolean;
  readonly #options: McpToolOptions;

  constructor(name: string, rpc: Rpc, options: McpToolOptions) {
    this.name = name;
    this.rpc = rpc;
    this.wrapsInput = !isObject(rpc.method.input);
    this.wrapsOutput = !isObject(rpc.method.output);
    this.refusesUnknownFields = rpc.codecs.get("json")?.refusesUnknownFields === true;
    this.#options = options;
  }

  /** Creates the definition. */
  describe({ comments, rules, httpMethodsOf }: DefinitionParts): ToolDefinition {
    const { kind, method, options } = this.rpc;
    const { title = wordsOf(method.name), description, hints } = this.#options;
    const style = { comments, useProtoFieldName: options.jsonOptions?.useProtoFieldName ?? false };
    const isClosed = this.refusesUnknownFields;
    const closing = isClosed ? { additionalProperties: false } : {};
    const wrapInput = (schema: JsonObject): JsonObject =>
      this.wrapsInput ? { ...objectOf("value", schema), ...closing } : schema;
    const wrapOutput = (schema: JsonObject): JsonObject => (this.wrapsOutput ? objectOf("value", schema) : schema);
    const text = description ?? commentOf(comments, method) ?? `The RPC ${selectorOf(method)}.`;
    const input = createMessageSchema(method.input, { ...style, rules, isClosed, direction: "input" }, wrapInput);
    const output = createMessageSchema(method.output, { ...style, direction: "output" }, (schema) =>
      kind === "stream" ? objectOf("messages", { type: "array", items: wrapOutput(schema) }) : wrapOutput(schema),
    );
    const definition = {
      name: this.name,
      title: cleanText(title, titleMax),
      description: cleanText(text, descriptionMax),
      inputSchema: input ?? tooLarge,
      outputSchema: output ?? tooLarge,
      annotations: annotationsOf({ ...hintsOf(method, httpMethodsOf(method)), ...hints }),
    };
    return { text: JSON.stringify(definition), isAbridged: input === undefined || output === undefined };
  }
}

function isObject(desc: DescMessage): boolean {
  const isKnown = desc.typeName === "google.protobuf.Any" || desc.typeName === "google.protobuf.Struct";
  return isKnown || !hasCustomJsonRepresentation(desc);
}

function objectOf(name: string, schema: JsonObject): JsonObject {
  return { type: "object", properties: { [name]: schema }, required: [name] };
}

function hintsOf({ idempotency }: DescMethod, httpMethods: readonly string[]): McpToolHints {
  const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;
  // First, because a definition with both is wrong about one of them.
  if (httpMethods.includes("DELETE")) return { destructive: true, idempotent: true };
  if (idempotency === NO_SIDE_EFFECTS || httpMethods.some((name) => name === "GET" || name === "QUERY")) {
    return { readOnly: true };
  }
  return idempotency === IDEMPOTENT || httpMethods.includes("PUT") ? { idempotent: true } : {};
}

/** JSON.stringify leaves out those that are undefined. */
function annotationsOf({ readOnly, destructive, idempotent, openWorld }: McpToolHints): object {
  return { readOnlyHint: readOnly, destructiveHint: destructive, idempotentHint: idempotent, openWorldHint: openWorld };
}

/** Returns the words of a name in camel case: `GetHTTPRule` is "Get HTTP Rule". */
function wordsOf(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").replaceAll("_", " ");
}
