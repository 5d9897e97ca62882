import { concatBytes, toUtf8, refusePromise } from "../http/index.ts";
import {
  type BodyCaller,
  type BodyReply,
  type ProtocolParts,
  createErrorRecordWriter,
  type ErrorRecordWriter,
} from "../protocols/index.ts";
import { createDefinitions } from "./definitions.ts";
import { jsonFields, jsonRpcError, type McpMessage, stringOf } from "./json-rpc.ts";
import type { McpOptions, McpStreamLimits } from "./options.ts";
import { findParamHeaders, type ParamHeaders } from "./param-headers.ts";
import { initializedRevisions, revisions } from "./revisions.ts";
import type { RunningCalls } from "./running-calls.ts";
import { selectTools, type Tool } from "./tools.ts";

/** Maximum tools in a `tools/list` page. 100 usual definitions have 200 KB. */
const pageTools = 100;

/** Size in bytes after which a `tools/list` page ends. A client reads a page as one message. */
const pageBytes = 1024 * 1024;

/** Number of fields in schemas after which a page ends. 100 usual definitions have 4,000; 10,000 take up to 0.2 s. */
const pageFields = 10_000;

/** Milliseconds for which clients may keep a tool list. Tools change when a server is deployed. */
const ttlMs = 300_000;

const capabilities = '"capabilities":{"tools":{}}';

type ServerOptions = McpOptions & { readonly path: string; readonly stream: McpStreamLimits };

/** A gateway's tools, and the replies to messages that call no tool. */
export class McpServer {
  readonly options: ServerOptions;
  readonly parts: ProtocolParts;
  readonly tools: ReadonlyMap<string, Tool>;
  /** Maximum message size for any tool, in bytes. */
  readonly readMaxBytes: number;
  readonly writeErrorRecord: ErrorRecordWriter;
  /** Shared with earlier servers of the same extension, which still run calls. */
  readonly runningCalls: RunningCalls;
  readonly paramHeaders: ParamHeaders;
  readonly #serverInfo: string;
  /** Created for the first `tools/list` request, because many servers never get one. */
  #definitionOf: ReturnType<typeof createDefinitions> | undefined;

  constructor(options: ServerOptions, parts: ProtocolParts, runningCalls: RunningCalls) {
    this.options = options;
    this.parts = parts;
    this.tools = selectTools(options.tools, parts.rpcs, parts.isIncomplete);
    this.runningCalls = runningCalls;
    this.paramHeaders = findParamHeaders(options.paramHeaders ?? {}, this.tools.values(), parts.isIncomplete);
    this.readMaxBytes = Math.max(0, ...[...this.tools.values()].map(({ rpc }) => rpc.options.readMaxBytes));
    this.writeErrorRecord = createErrorRecordWriter(undefined, parts.registry);
    this.#serverInfo = JSON.stringify(options.serverInfo ?? { name: "protoport", version: "1" });
  }

  /** Replies to a message that calls no tool. @throws ConnectError for an unknown method or an invalid cursor */
  reply(message: McpMessage, stateless: boolean, caller: BodyCaller): BodyReply {
    const { id, method, params } = message;
    // Notifications and responses from clients get no response (Streamable HTTP, "Sending Messages").
    if (id === undefined || method === undefined) return { kind: "reply", httpStatus: 202, fields: [] };
    const page = method === "tools/list" ? this.#pageOf(params.get("cursor") ?? '"0"', caller) : [];
    const members = this.#membersOf(message, stateless);
    if (members === undefined) {
      throw jsonRpcError("methodNotFound", "this server has no such method", stateless ? 404 : 200);
    }
    const [before, after] = this.frame(id, stateless);
    const body = concatBytes([toUtf8(before), ...page, toUtf8(members + after)]);
    // The session only tells callers apart that cancel calls. No other request needs it.
    const fields = method === "initialize" ? [...jsonFields, "mcp-session-id", crypto.randomUUID()] : jsonFields;
    return { kind: "reply", httpStatus: 200, fields, body };
  }

  /** Returns the text of a JSON-RPC response before and after the members of `result`. */
  frame(id: string, stateless: boolean): readonly [before: string, after: string] {
    const meta = `,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":${this.#serverInfo}}`;
    return [`{"jsonrpc":"2.0","id":${id},"result":{`, `${stateless ? meta : ""}}}`];
  }

  /** Returns the members of `result`, without the `tools/list` page. Returns `undefined` for an unknown method. */
  #membersOf({ method, params }: McpMessage, stateless: boolean): string | undefined {
    const { isListed, instructions } = this.options;
    const guide = instructions === undefined ? "" : `,"instructions":${JSON.stringify(instructions)}`;
    const cache = `,"ttlMs":${ttlMs},"cacheScope":"${isListed === undefined ? "public" : "private"}"`;
    if (method === "tools/list") return stateless ? cache : "";
    if (stateless) {
      const supported = `"supportedVersions":${JSON.stringify(revisions)}`;
      return method === "server/discover" ? `${supported},${capabilities}${guide}${cache}` : undefined;
    }
    if (method !== "initialize") return method === "ping" ? "" : undefined;
    const requested = stringOf(params.get("protocolVersion"));
    const revision = initializedRevisions.find((each) => each === requested) ?? initializedRevisions[0];
    return `"protocolVersion":"${revision}",${capabilities},"serverInfo":${this.#serverInfo}${guide}`;
  }

  /** Returns a `tools/list` page as members for a result. A cursor is an index into the list with all tools. */
  #pageOf(cursor: string, caller: BodyCaller): readonly Uint8Array[] {
    const definitionOf = (this.#definitionOf ??= createDefinitions(
      this.options,
      this.parts,
      this.tools,
      this.paramHeaders,
    ));
    const { isListed = () => true } = this.options;
    const list = [...this.tools.values()];
    let at = /^"[0-9]{1,7}"$/.test(cursor) ? Number(cursor.slice(1, -1)) : list.length;
    if (at > 0 && at >= list.length) throw jsonRpcError("invalidParams", "the cursor is not valid", 200);
    const items: Uint8Array[] = [];
    let bytes = 0;
    let fields = 0;
    const isFull = (): boolean => items.length >= pageTools || bytes >= pageBytes || fields >= pageFields;
    for (; at < list.length && !isFull(); at += 1) {
      const tool = list[at];
      // In JavaScript, `isListed` may return a value of any type.
      const result: unknown = tool !== undefined && isListed(tool.rpc.method, caller);
      if (tool === undefined || refusePromise(result, "isListed must be synchronous") !== true) continue;
      const definition = definitionOf(tool);
      items.push(items.length === 0 ? definition.json.subarray(1) : definition.json);
      bytes += definition.json.byteLength;
      fields += definition.fields;
    }
    const next = at < list.length ? `,"nextCursor":"${at}"` : "";
    return [toUtf8('"tools":['), ...items, toUtf8(`]${next}`)];
  }
}
