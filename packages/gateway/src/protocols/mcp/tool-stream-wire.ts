import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";
import {
  concatBytes,
  type Exchange,
  type HeaderFields,
  noBytes,
  prepareHeaderFields,
  toUtf8,
} from "../../exchange/index.ts";
import { oneMessage, type RequestMessages, type StreamWire } from "../index.ts";
import { isId } from "./read-message.ts";
import { challengeStatus, textItem, type ToolCall, ToolWire } from "./tool-wire.ts";

/** The most characters of a message that a progress notification contains. 1,000: people read them while they wait. */
const progressMax = 1_000;

/**
 * The wire of a tool with a server stream: progress notifications while the messages arrive, if the client has asked for
 * them, then one result with all messages. Server-Sent Events, unless the call fails before its first message.
 */
export class ToolStreamWire extends ToolWire implements StreamWire {
  readonly reportsErrorAtEnd = true;
  readonly sendsHeaderEarly = true;
  readonly heartbeat: Uint8Array = comment;
  limitError: ConnectError | undefined;
  readonly #messages: string[] = [];
  #bytes = 0;

  constructor(exchange: Exchange, call: ToolCall) {
    super(exchange, call, eventFields, call.server.stream.timeoutMs);
  }

  readMessages(): RequestMessages {
    // Only server streams are tools.
    return oneMessage(this.readMessage());
  }

  encode(message: Message): Uint8Array {
    const text = this.structure(message);
    const { messagesMax, bytesMax } = this.call.server.stream;
    const bytes = this.#bytes + toUtf8(text).byteLength;
    if (this.#messages.length >= messagesMax) this.limitError = tooLong(`${messagesMax} messages`);
    else if (bytes > bytesMax) this.limitError = tooLong(`${bytesMax} bytes`);
    if (this.limitError !== undefined) return noBytes;
    this.#bytes = bytes;
    this.#messages.push(text);
    const token = this.call.message.meta.get("progressToken");
    return token === undefined || !isId(token) ? noBytes : progressEvent(token, this.#messages.length, text);
  }

  headerToSend(header: Headers): HeaderFields {
    return this.fieldsToSend(header);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return bytes.byteLength === 0 ? undefined : this.exchange.write(bytes);
  }

  end(_trailer: Headers, error: ConnectError | undefined): void {
    // This is the last write of the response, so backpressure can be ignored.
    void this.write(this.#resultEvent(error));
    this.exchange.end();
  }

  respond(header: HeaderFields, bytes: Uint8Array, _trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined && (challengeStatus(error) !== undefined || this.#messages.length === 0)) {
      return this.writeError(error);
    }
    this.exchange.respond(200, header, concatBytes([bytes, this.#resultEvent(error)]));
  }

  #resultEvent(error: ConnectError | undefined): Uint8Array {
    const json = `{"messages":[${this.#messages.join(",")}]}`;
    const members =
      error === undefined
        ? `"content":[${textItem(json)}],"structuredContent":${json}`
        : this.errorMembers(error, this.#messages.length === 0 ? undefined : json);
    return event(this.resultText(members));
  }
}

function progressEvent(token: string, progress: number, text: string): Uint8Array {
  const message = text.length > progressMax ? `${text.slice(0, progressMax).toWellFormed()}…` : text;
  const params = `{"progressToken":${token},"progress":${progress},"message":${JSON.stringify(message)}}`;
  return event(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`);
}

/** JSON text has no line breaks. */
function event(json: string): Uint8Array {
  return toUtf8(`event: message\ndata: ${json}\n\n`);
}

function tooLong(limit: string): ConnectError {
  const message = `the stream was ended after ${limit}; a result cannot contain more`;
  return problem("ERR_PROTOCOL", message, { code: Code.ResourceExhausted });
}

/** nginx buffers responses without the last field. */
const eventFields: HeaderFields = prepareHeaderFields(
  "content-type",
  "text/event-stream",
  "cache-control",
  "no-cache",
  "x-accel-buffering",
  "no",
);

const comment = toUtf8(":\n\n");
