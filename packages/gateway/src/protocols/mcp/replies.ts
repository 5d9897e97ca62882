import { runSteps, toUtf8 } from "../../exchange/index.ts";
import { commentsOf } from "../../openapi/index.ts";
import { refusePromise } from "../../options/index.ts";
import type { BodyCaller, BodyReply, ProtocolParts } from "../index.ts";
import { jsonFields, jsonRpcError } from "./json-rpc.ts";
import type { McpOptions } from "./options.ts";
import { type McpMessage, stringOf } from "./read-message.ts";
import { negotiateRevision, revisions } from "./revisions.ts";
import type { DefinitionParts, Tool, ToolDefinition } from "./tool.ts";

/** The most tools in a page of `tools/list`. 100: a page of usual definitions has 200 KB. */
const pageTools = 100;

/** The characters after which a page of `tools/list` ends. 1 Mi: a client reads it as one message. */
const pageLength = 1024 * 1024;

/** The characters that a definition without a schema counts as. 64 Ki: creating it costs as much as a large one. */
const abridgedLength = 64 * 1024;

/** The most characters of definitions that are kept. 16 Mi: more than 5,000 usual ones; others are created again. */
const keptLengthMax = 16 * 1024 * 1024;

/** How long clients may keep a list of tools, in milliseconds. 5 minutes: tools change when a server is deployed. */
const ttlMs = 300_000;

/** Reads a message and returns the result, as the members of a JSON object without its braces. */
type Method = (message: McpMessage, caller: BodyCaller) => string;

/** Responds to the methods that call no tool. */
export class Replies {
  readonly #options: McpOptions;
  readonly #tools: readonly Tool[];
  readonly #parts: ProtocolParts;
  readonly #serverInfo: string;
  readonly #cache: string;
  readonly #definitions = new Map<Tool, ToolDefinition>();
  #keptLength = 0;
  #definitionParts: DefinitionParts | undefined;
  readonly #stateless: Readonly<Record<string, Method>>;
  readonly #initialized: Readonly<Record<string, Method>>;

  constructor(options: McpOptions, tools: ReadonlyMap<string, Tool>, parts: ProtocolParts) {
    const { serverInfo = { name: "gateway", version: "1" }, instructions, isListed } = options;
    this.#options = options;
    this.#tools = [...tools.values()];
    this.#parts = parts;
    this.#serverInfo = JSON.stringify(serverInfo);
    this.#cache = `,"ttlMs":${ttlMs},"cacheScope":"${isListed === undefined ? "public" : "private"}"`;
    const capabilities = '"capabilities":{"tools":{}}';
    const guide = instructions === undefined ? "" : `,"instructions":${JSON.stringify(instructions)}`;
    const list: Method = (message, caller) => this.#list(message, caller);
    this.#stateless = {
      "server/discover": () => `"supportedVersions":${JSON.stringify(revisions)},${capabilities}${guide}${this.#cache}`,
      "tools/list": (message, caller) => list(message, caller) + this.#cache,
    };
    this.#initialized = {
      initialize: ({ params }) => {
        const revision = JSON.stringify(negotiateRevision(stringOf(params.get("protocolVersion"))));
        return `"protocolVersion":${revision},${capabilities},"serverInfo":${this.#serverInfo}${guide}`;
      },
      ping: () => "",
      "tools/list": list,
    };
  }

  /**
   * Returns the reply to a message that calls no tool.
   *
   * @throws ConnectError for an unknown method or a cursor that is not valid
   */
  reply(message: McpMessage, stateless: boolean, caller: BodyCaller): BodyReply {
    const { id, method = "" } = message;
    // A notification or a response of the client, which gets no response (Streamable HTTP, "Sending Messages").
    if (id === undefined || message.method === undefined) return { kind: "reply", httpStatus: 202, fields: [] };
    const methods = stateless ? this.#stateless : this.#initialized;
    if (!Object.hasOwn(methods, method)) {
      throw jsonRpcError("methodNotFound", "this server has no such method", stateless ? 404 : 200);
    }
    const result = methods[method]?.(message, caller) ?? "";
    const body = toUtf8(this.resultText(id, result, stateless));
    return { kind: "reply", httpStatus: 200, fields: jsonFields, body };
  }

  /** Returns a result response of JSON-RPC. @param members - the members of the result, without braces */
  resultText(id: string, members: string, stateless: boolean): string {
    if (!stateless) return `{"jsonrpc":"2.0","id":${id},"result":{${members}}}`;
    const meta = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":${this.#serverInfo}}`;
    return `{"jsonrpc":"2.0","id":${id},"result":{${members === "" ? "" : `${members},`}${meta}}}`;
  }

  #list({ params }: McpMessage, caller: BodyCaller): string {
    const listed: string[] = [];
    let at = this.#startOf(params.get("cursor"));
    let length = 0;
    for (; at < this.#tools.length && listed.length < pageTools && length < pageLength; at += 1) {
      const tool = this.#tools[at];
      if (tool === undefined || !this.#isListed(tool, caller)) continue;
      const { text, isAbridged } = this.#definitionOf(tool);
      length += isAbridged ? Math.max(abridgedLength, text.length) : text.length;
      listed.push(text);
    }
    return `"tools":[${listed.join(",")}]${at < this.#tools.length ? `,"nextCursor":"${at}"` : ""}`;
  }

  #definitionOf(tool: Tool): ToolDefinition {
    const kept = this.#definitions.get(tool);
    if (kept !== undefined) return kept;
    const definition = tool.describe(this.#partsOfDefinitions());
    const { length } = definition.text;
    if (this.#keptLength + length <= keptLengthMax) {
      this.#keptLength += length;
      this.#definitions.set(tool, definition);
    }
    return definition;
  }

  #isListed({ rpc }: Tool, caller: BodyCaller): boolean {
    const { isListed } = this.#options;
    if (isListed === undefined) return true;
    // A function without types may return anything.
    const result: unknown = isListed(rpc.method, caller);
    return refusePromise(result, "isListed must be synchronous") === true;
  }

  /** Returns the index of the first tool of a page. A cursor is an index in the list of all tools. */
  #startOf(cursor = '"0"'): number {
    const at = /^"[0-9]{1,7}"$/.test(cursor) ? Number(cursor.slice(1, -1)) : Number.NaN;
    if (at === 0 || at < this.#tools.length) return at;
    throw jsonRpcError("invalidParams", "the cursor is not valid", 200);
  }

  /** Reads comments and rules with the first list, because many servers are never asked for one. */
  #partsOfDefinitions(): DefinitionParts {
    if (this.#definitionParts !== undefined) return this.#definitionParts;
    const bindings = Map.groupBy(this.#parts.restRoutes.bindings, ({ method }) => method);
    return (this.#definitionParts = {
      rules: this.#options.validation,
      comments: this.#options.comments ?? runSteps(commentsOf(this.#tools.map(({ rpc }) => rpc.method.parent))),
      httpMethodsOf: (method) => (bindings.get(method) ?? []).map(({ pattern }) => pattern.httpMethod),
    });
  }
}
