/**
 * Reads the messages of a response stream. The content type determines the format: JSON values as lines, as an array or
 * concatenated, server-sent events, or the bytes in google.api.HttpBody messages.
 */
import type { JsonValue, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageTooLargeError } from "@protoport/gateway/errors";
import { findField, JsonValueReader, type MessageSplitter, readMessages } from "@protoport/gateway/messages";
import { findProtoField } from "@protoport/gateway/rest";
import { unexpectedTypeError, readResponsePieces } from "./response-body.ts";
import { type ErrorStyle, readResponseError } from "./response-error.ts";
import type { ResponseReader } from "./response-reader.ts";
import type { RestClientRule } from "./rest-rule.ts";

/** The parameters for reading a response stream. */
interface StreamReading {
  readonly rule: RestClientRule;
  readonly reader: ResponseReader;
  readonly errors: ErrorStyle;
  /** Maximum number of bytes in a message. */
  readonly maxMessageBytes: number;
}

/**
 * Opens a response stream.
 *
 * @throws ConnectError `Unknown` if the content type is not a stream format, such as HTML
 */
export function readResponseStream(response: Response, reading: StreamReading): AsyncIterable<Message> {
  const { reader } = reading;
  const type = response.headers.get("content-type") ?? "";
  if (reader.readRaw !== undefined) return readResponseBytes(response, reader.readRaw, type);
  if (/^text\/event-stream[\t ]*(?:;|$)/i.test(type)) return readEvents(response, reading);
  if (/^text\/(?!plain|json)|^application\/xhtml/i.test(type)) {
    throw unexpectedTypeError(response.headers, "a stream of JSON or events");
  }
  return readValues(response, type, reading);
}

async function* readResponseBytes(
  response: Response,
  readRaw: (bytes: Uint8Array, contentType: string) => Message,
  type: string,
): AsyncGenerator<Message, void> {
  // In a byte stream, only the first message has the content type.
  let contentType = type;
  for await (const piece of readResponsePieces(response.body)) {
    yield readRaw(piece, contentType);
    contentType = "";
  }
}

async function* readEvents(response: Response, reading: StreamReading): AsyncGenerator<Message, void> {
  const splitter = new EventSplitter(reading.maxMessageBytes);
  for await (const { name, data } of readMessages(readResponsePieces(response.body), splitter)) {
    if (name === "end") return;
    if (name === "error") throw errorOfLine(data, response, reading.errors);
    // Other events are ignored, as by an EventSource that listens only to `message`.
    if (name === "message") yield reading.reader.readJson(data);
  }
}

async function* readValues(
  response: Response,
  type: string,
  { rule, reader, errors, maxMessageBytes }: StreamReading,
): AsyncGenerator<Message, void> {
  // JSON lines are read as consecutive values. An array in a line is a value and is not split.
  const areLines = /^application\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)\b/i.test(type);
  let wrappers: readonly string[] | undefined;
  const start: FirstByte = { byte: undefined };
  for await (const value of splitValues(response, start, areLines, maxMessageBytes)) {
    wrappers ??= wrappersOf(rule, areLines || start.byte === openBracketByte);
    const wrapped = unwrap(lineDecoder.decode(value), wrappers);
    if (wrapped === undefined) yield reader.readJson(value);
    else if (wrapped.name === "result") yield reader.readJson(wrapped.value);
    else throw errorOfLine(wrapped.value, response, errors);
  }
}

/** The first byte of a body that is not white space. */
interface FirstByte {
  byte: number | undefined;
}

const openBracketByte = 0x5b;

/** Yields the JSON values in a body as bytes. @throws ConnectError `Internal` for an invalid array */
async function* splitValues(
  response: Response,
  start: FirstByte,
  areLines: boolean,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void> {
  const values = { read: (value: Uint8Array) => value, end: () => undefined };
  const splitter = new JsonValueReader<Uint8Array>(maxBytes, values, !areLines);
  try {
    yield* readMessages(recordFirstByte(readResponsePieces(response.body), start), splitter);
  } catch (error) {
    const found = ConnectError.from(error);
    // The splitter, which servers also use, reports InvalidArgument. In a response, the server caused the problem.
    if (found.code !== Code.InvalidArgument) throw error;
    throw new ConnectError(`the response is not valid: ${found.rawMessage}`, Code.Internal);
  }
}

async function* recordFirstByte(pieces: AsyncIterable<Uint8Array>, start: FirstByte): AsyncGenerator<Uint8Array, void> {
  for await (const piece of pieces) {
    start.byte ??= piece.find((byte) => byte > 0x20);
    yield piece;
  }
}

const lineDecoder = new TextDecoder();

// Returns the names of members that wrap a message or an error. If the wrapper is optional (`mayBePlain`), omits names
// that an unwrapped message may contain.
function wrappersOf({ method, pattern }: RestClientRule, mayBePlain: boolean): readonly string[] {
  const { output } = method;
  const field = findProtoField(output, pattern.responseBody);
  const type = field === undefined ? output : field.message;
  const isAmbiguous = (name: string): boolean =>
    field?.fieldKind === "map" ||
    (type !== undefined && (anyJson.has(type.typeName) || findField(type, name) !== undefined));
  // Values of `application/json` outside an array come from grpc-gateway, which always wraps messages.
  return ["@error", "error", "result"].filter((name) => !mayBePlain || !isAmbiguous(name));
}

// Message types whose JSON may be one member with any name. google.protobuf.Any's JSON has at least two.
const anyJson: ReadonlySet<string> = new Set(["google.protobuf.Struct", "google.protobuf.Value"]);

const wrapperStart = /^[\s]*\{[\s]*"(@error|error|result)"[\s]*:/;

// The name and value of the only member, if it is a wrapper. The value stays JSON text, to keep numbers exact.
function unwrap(
  text: string,
  wrappers: readonly string[],
): { readonly name: string; readonly value: string } | undefined {
  const [start = "", name = ""] = wrapperStart.exec(text) ?? [];
  if (!wrappers.includes(name)) return undefined;
  try {
    const value: JsonValue = JSON.parse(text);
    if (typeof value !== "object" || value === null || Object.keys(value).length !== 1) return undefined;
  } catch {
    return undefined;
  }
  return { name, value: text.slice(start.length, text.lastIndexOf("}")) };
}

function errorOfLine(json: string, response: Response, errors: ErrorStyle): ConnectError {
  let record: JsonValue | undefined;
  try {
    record = JSON.parse(json);
  } catch {
    record = undefined;
  }
  return readResponseError(record, response.status, response.headers, errors);
}

/** A server-sent event. */
interface ServerEvent {
  /** The event name, or `message` if the server sends no name. */
  readonly name: string;
  readonly data: string;
}

const lineEnd = /\r\n|\n|\r(?!$)/g;

/** Splits a body into server-sent events (HTML, "Interpreting an event stream"). An incomplete event is dropped. */
export class EventSplitter implements MessageSplitter<ServerEvent> {
  readonly #decoder = new TextDecoder();
  readonly #maxData: number;
  #text = "";
  #at = 0;
  /** Index in the text at which the search for a line end continues. */
  #searchAt = 0;
  #name = "";
  #data: string[] = [];
  #units = 0;

  /** @param maxData - maximum UTF-16 units in an event's data, above which reading fails with `ResourceExhausted` */
  constructor(maxData: number) {
    this.#maxData = maxData;
  }

  add(piece: Uint8Array): void {
    this.#text = this.#text.slice(this.#at) + this.#decoder.decode(piece, { stream: true });
    this.#searchAt -= this.#at;
    this.#at = 0;
  }

  take(): ServerEvent | undefined {
    for (let line = this.#line(); line !== undefined; line = this.#line()) {
      if (line !== "") this.#field(line);
      else if (this.#data.length > 0) return this.#event();
      else this.#name = "";
    }
    return undefined;
  }

  end(): undefined {
    return undefined;
  }

  #line(): string | undefined {
    lineEnd.lastIndex = this.#searchAt;
    const found = lineEnd.exec(this.#text);
    // A carriage return at the end is searched again, because the next piece may start with the line feed.
    // equivalent mutant: after the check below throws, the search index is not read.
    this.#searchAt = found === null ? Math.max(this.#text.length - 1, this.#at) : lineEnd.lastIndex;
    if (this.#units + (found?.index ?? this.#text.length) - this.#at > this.#maxData)
      throw messageTooLargeError(this.#maxData);
    if (found === null) return undefined;
    const line = this.#text.slice(this.#at, found.index);
    this.#at = lineEnd.lastIndex;
    return line;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "event") this.#name = value;
    if (name !== "data") return;
    this.#units += value.length;
    this.#data.push(value);
  }

  #event(): ServerEvent {
    const event = { name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n") };
    this.#name = "";
    this.#data = [];
    this.#units = 0;
    return event;
  }
}
