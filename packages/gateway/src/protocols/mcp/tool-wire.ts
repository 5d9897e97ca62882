import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import { type Exchange, type HeaderFields, readHeaderField, toUtf8 } from "../../exchange/index.ts";
import {
  type Codec,
  LazyHeaders,
  messageTooLarge,
  metadataFields,
  type ProtocolParts,
  readRestTimeout,
  type ResponseParts,
  toFields,
  type UnaryWire,
  type Wire,
} from "../index.ts";
import { codeNames, type ErrorRecordWriter, httpStatusOf } from "../rest/rules/index.ts";
import { errorText, jsonFields } from "./json-rpc.ts";
import type { McpStreamLimits } from "./options.ts";
import { type McpMessage, membersOf } from "./read-message.ts";
import type { Replies } from "./replies.ts";
import type { Tool } from "./tool.ts";

/** The common parts of all requests. */
export interface McpServer {
  readonly path: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly replies: Replies;
  readonly corsOrigins: ProtocolParts["corsOrigins"];
  /** Writes the details of errors. */
  readonly writeErrorRecord: ErrorRecordWriter;
  readonly stream: McpStreamLimits;
  /** The largest message of a tool, in bytes. */
  readonly readMaxBytes: number;
}

/** A call of a tool. */
export interface ToolCall {
  readonly server: McpServer;
  readonly tool: Tool;
  /** JSON text. */
  readonly id: string;
  readonly message: McpMessage;
  readonly stateless: boolean;
  readonly idempotencyKey: string | undefined;
}

/** The common parts of the wires of unary and streaming tools. */
export abstract class ToolWire implements Pick<Wire, "body" | "readMessage" | "requestHeader" | "responseTrailer"> {
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly body = undefined;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  readonly responseTrailer: LazyHeaders = new LazyHeaders([]);
  protected readonly exchange: Exchange;
  protected readonly call: ToolCall;
  readonly #contentType: HeaderFields;

  /** @param contentType - the header fields that describe the content of the response, such as `content-type` */
  constructor(exchange: Exchange, call: ToolCall, contentType: HeaderFields, timeoutMsDefault?: number) {
    const { timeoutMs = timeoutMsDefault, error } = readRestTimeout(
      exchange.common,
      call.tool.rpc.options.maxTimeoutMs,
    );
    this.timeoutMs = timeoutMs;
    this.problem = error;
    this.requestHeader = new LazyHeaders(fieldsOf(exchange, call));
    this.responseHeader = new LazyHeaders(contentType);
    this.exchange = exchange;
    this.call = call;
    this.#contentType = contentType;
  }

  protected get codec(): Codec {
    const codec = this.call.tool.rpc.codecs.get("json");
    if (codec === undefined) throw new TypeError("there is no codec for JSON");
    return codec;
  }

  readMessage(): Message {
    const { tool, message } = this.call;
    const { readMaxBytes } = tool.rpc.options;
    const bytes = toUtf8(tool.wrapsInput ? valueOf(message.arguments, tool.refusesUnknownFields) : message.arguments);
    // The body was read before the limit of the RPC was known.
    if (bytes.byteLength > readMaxBytes) throw messageTooLarge(readMaxBytes);
    return this.codec.decode(bytes);
  }

  /** Returns a message as the JSON text of a structured result. */
  protected structure(message: Message): string {
    const text = utf8.decode(this.codec.encode(message));
    return this.call.tool.wrapsOutput ? `{"value":${text}}` : text;
  }

  /** Returns a JSON-RPC response with the members of a result. */
  protected resultText(members: string): string {
    const { server, id, stateless } = this.call;
    return server.replies.resultText(id, members, stateless);
  }

  /** Returns the header fields of a response: those of the protocol, and the others that the handler has set. */
  protected fieldsToSend(header: Headers, own: HeaderFields = this.#contentType): HeaderFields {
    if (header instanceof LazyHeaders && header.isPristine) return own;
    const fields = toFields(header);
    const isOwn = (at: number): boolean => readHeaderField(this.#contentType, fields[at - (at % 2)] ?? "") !== null;
    return [...own, ...fields.filter((_, at) => !isOwn(at))];
  }

  /**
   * Returns the members of the result for an error of the tool: its code and message, and its details if it has any.
   *
   * @param received - the JSON text of what the tool has returned before; `undefined` for nothing
   */
  protected errorMembers(error: ConnectError, received?: string): string {
    const httpStatus = httpStatusOf(error);
    const texts = [`${codeNames[error.code]}: ${error.rawMessage}`];
    if (error.details.length > 0) {
      const { rpc } = this.call.tool;
      texts.push(utf8.decode(this.call.server.writeErrorRecord(error, { httpStatus, procedure: rpc.name }).body));
    }
    if (received !== undefined) texts.push(received);
    const structured = received === undefined ? "" : `,"structuredContent":${received}`;
    return `"content":[${texts.map(textItem).join(",")}]${structured},"isError":true`;
  }

  writeError(error: ConnectError): void {
    const httpStatus = challengeStatus(error);
    const text =
      httpStatus === undefined ? this.resultText(this.errorMembers(error)) : errorText(error, this.call.id, httpStatus);
    const fields = [...this.fieldsToSend(this.responseHeader, jsonFields), ...metadataFields(error)];
    this.exchange.respond(httpStatus ?? 200, fields, toUtf8(text));
  }
}

/** The wire of a tool that returns one message. */
export class ToolUnaryWire extends ToolWire implements UnaryWire {
  constructor(exchange: Exchange, call: ToolCall) {
    super(exchange, call, jsonFields);
  }

  writeMessage({ message, header }: ResponseParts): void {
    const json = this.structure(message);
    const text = this.resultText(`"content":[${textItem(json)}],"structuredContent":${json}`);
    this.exchange.respond(200, this.fieldsToSend(header), toUtf8(text));
  }
}

/** Returns the member `value` of the arguments. @throws ConnectError if it is missing, or for others if they are refused */
function valueOf(text: string, refusesOthers: boolean): string {
  const members = membersOf(text);
  const value = members.get("value");
  if (value === undefined) throw problem("ERR_MESSAGE_INVALID", 'the argument "value" is missing');
  if (refusesOthers && members.size > 1) {
    throw problem("ERR_MESSAGE_INVALID", 'there must be no argument other than "value"');
  }
  return value;
}

/** Returns the content item of a text, as JSON. */
export function textItem(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}

/**
 * Returns the HTTP status of an error that asks the client for another credential (MCP, "Authorization"); `undefined` for
 * an error of the tool. A 401 requires a challenge (RFC 9110 §15.5.2): without one, another server may have refused the
 * credential of this server.
 */
export function challengeStatus({ code, metadata }: ConnectError): 401 | 403 | undefined {
  if (!metadata.has("www-authenticate")) return undefined;
  if (code === Code.Unauthenticated) return 401;
  return code === Code.PermissionDenied ? 403 : undefined;
}

/**
 * Returns the header that the handler sees: with the idempotency key of `_meta`, unless the header has one, as a String of
 * RFC 9651 §3.3.3 (draft-ietf-httpapi-idempotency-key-header §2.1), whose escapes are those of JSON.
 */
function fieldsOf(exchange: Exchange, { idempotencyKey: key }: ToolCall): HeaderFields {
  if (key === undefined || exchange.get("idempotency-key") !== null) return exchange.fields;
  return [...exchange.fields, "idempotency-key", JSON.stringify(key)];
}

const utf8 = new TextDecoder();
