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

/** The most characters of a description. 4,000: about a page; all descriptions together fill the context of a model. */
const descriptionMax = 4_000;

/** An RPC as a tool. */
export class Tool {
  readonly name: string;
  readonly rpc: Rpc;
  /** Whether the input, and the output, is in a member `value`, because its JSON is not an object. */
  readonly wrapsInput: boolean;
  readonly wrapsOutput: boolean;
  readonly #options: McpToolOptions;
  #definition: string | undefined;

  constructor(name: string, rpc: Rpc, options: McpToolOptions) {
    this.name = name;
    this.rpc = rpc;
    this.wrapsInput = !isObject(rpc.method.input);
    this.wrapsOutput = !isObject(rpc.method.output);
    this.#options = options;
  }

  /** Returns the definition as JSON text. It is created on the first call. */
  definition(parts: DefinitionParts): string {
    return (this.#definition ??= JSON.stringify(this.#describe(parts)));
  }

  #describe({ comments, rules, httpMethodsOf }: DefinitionParts): object {
    const { kind, method, options } = this.rpc;
    const { title = wordsOf(method.name), description, hints } = this.#options;
    const style = { comments, useProtoFieldName: options.jsonOptions?.useProtoFieldName ?? false };
    const wrapIf = (isWrapped: boolean) => (schema: JsonObject) => (isWrapped ? objectOf("value", schema) : schema);
    const wrapOutput = wrapIf(this.wrapsOutput);
    const text = description ?? commentOf(comments, method) ?? `The RPC ${selectorOf(method)}.`;
    return {
      name: this.name,
      title,
      description: cleanText(text, descriptionMax),
      inputSchema: createMessageSchema(method.input, { ...style, rules, direction: "input" }, wrapIf(this.wrapsInput)),
      outputSchema: createMessageSchema(method.output, { ...style, direction: "output" }, (schema) =>
        kind === "stream" ? objectOf("messages", { type: "array", items: wrapOutput(schema) }) : wrapOutput(schema),
      ),
      annotations: annotationsOf({ ...hintsOf(method, httpMethodsOf(method)), ...hints }),
    };
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
