import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { type BodyPlan, type Exchange, planBody } from "../../exchange/index.ts";
import { FieldProblem } from "../../messages/json/index.ts";
import {
  type BodyCaller,
  type BodyReply,
  type BodyWire,
  type CallTarget,
  normalizeContentType,
  type Protocol,
} from "../index.ts";
import { jsonRpcError, respondWithError } from "./json-rpc.ts";
import { type McpMessage, readMcpMessage, stringOf } from "./read-message.ts";
import { isStateless } from "./revisions.ts";
import { ToolStreamWire } from "./tool-stream-wire.ts";
import { type McpServer, type ToolCall, ToolUnaryWire } from "./tool-wire.ts";

/** The bytes of a body in addition to the arguments of its tool. 64 KiB: `_meta` may describe the client at length. */
const envelopeBytesMax = 64 * 1024;

/** An idempotency key: visible ASCII characters and spaces. 256: a UUID has 36. */
const idempotencyKey = /^[\x20-\x7e]{1,256}$/;

/** Reads one message of a client. */
export class McpBodyWire implements BodyWire {
  readonly problem: ConnectError | undefined;
  readonly body: BodyPlan;
  readonly #exchange: Exchange;
  readonly #protocol: Protocol;
  readonly #server: McpServer;
  #id: string | undefined;

  constructor(exchange: Exchange, protocol: Protocol, server: McpServer) {
    this.problem = problemOfHeader(exchange, server);
    this.body = planBody(server.readMaxBytes + envelopeBytesMax);
    this.#exchange = exchange;
    this.#protocol = protocol;
    this.#server = server;
  }

  readTarget(body: Uint8Array, caller: BodyCaller): CallTarget | BodyReply {
    const message = parse(body);
    this.#id = message.id;
    if (message.problem !== undefined) throw jsonRpcError("invalidRequest", message.problem, 400);
    const stateless = isStateless(this.#exchange, message);
    if (message.method !== "tools/call" || message.id === undefined) {
      return this.#server.replies.reply(message, stateless, caller);
    }
    return this.#targetOf(message, message.id, stateless);
  }

  #targetOf(message: McpMessage, id: string, stateless: boolean): CallTarget {
    const tool = this.#server.tools.get(message.name ?? "");
    if (tool === undefined) throw jsonRpcError("invalidParams", "unknown tool", 200);
    const call: ToolCall = {
      server: this.#server,
      tool,
      id,
      message,
      stateless,
      idempotencyKey: idempotencyKeyOf(message),
    };
    const common = { protocol: this.#protocol, pathTemplate: this.#server.path };
    const { rpc } = tool;
    return rpc.kind === "unary"
      ? { kind: "unary", rpc, ...common, open: (exchange) => new ToolUnaryWire(exchange, call) }
      : { kind: "stream", rpc, ...common, open: (exchange) => new ToolStreamWire(exchange, call) };
  }

  writeError(error: ConnectError): void {
    respondWithError(this.#exchange, error, this.#id);
  }
}

function problemOfHeader(exchange: Exchange, { corsOrigins }: McpServer): ConnectError | undefined {
  const { contentType, contentEncoding } = exchange.common;
  if (!isOriginAllowed(exchange, corsOrigins)) {
    return problem("ERR_PROTOCOL", "pages of this origin may not call", {
      code: Code.PermissionDenied,
      httpStatus: 403,
      option: "cors.origins",
    });
  }
  if (normalizeContentType(contentType ?? "") !== "application/json") {
    return problem("ERR_CONTENT_TYPE", "the content type must be application/json");
  }
  const isIdentity = contentEncoding === null || contentEncoding === "" || contentEncoding === "identity";
  return isIdentity ? undefined : problem("ERR_ENCODING_UNSUPPORTED", "Content-Encoding must be identity");
}

/** @throws ConnectError for a key that is not valid, because the call would run without it */
function idempotencyKeyOf({ params, meta }: McpMessage): string | undefined {
  if (params.get("_meta")?.startsWith("{") === false) {
    throw jsonRpcError("invalidParams", '"_meta" must be an object', 200);
  }
  const text = meta.get("idempotencyKey");
  const key = stringOf(text);
  if (text === undefined || (key !== undefined && idempotencyKey.test(key))) return key;
  throw jsonRpcError("invalidParams", '"idempotencyKey" must be a string of 1 to 256 ASCII characters', 200);
}

function parse(body: Uint8Array): McpMessage {
  try {
    return readMcpMessage(body);
  } catch (error) {
    throw jsonRpcError("parse", error instanceof FieldProblem ? error.message : "the bytes are not UTF-8", 400);
  }
}

/**
 * Returns whether the page that sent a request may call, which protects servers on a developer's machine from DNS
 * rebinding (Streamable HTTP, "Security & Endpoint"). Requests of programs have no `Origin`.
 *
 * Allowed are the origins of the option `cors`; pages on loopback, if the request is to loopback; and pages of this server
 * over https, where another name for this address would not match the certificate.
 */
function isOriginAllowed(exchange: Exchange, corsOrigins: McpServer["corsOrigins"]): boolean {
  const origin = exchange.get("origin");
  if (origin === null || corsOrigins === "*" || corsOrigins?.includes(origin) === true) return true;
  const own = exchange.url.slice(0, exchange.url.length - exchange.target.length);
  return loopback.test(origin) ? loopback.test(own) : own.startsWith("https://") && origin === own;
}

const loopback = /^https?:\/\/(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?$/i;
