/**
 * Which messages are this stream? JSON values as lines, as an array or one after the other, server-sent events, or the
 * bytes of google.api.HttpBody messages: whatever the server sends, as its content type says.
 */
import type { JsonValue, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { findField } from "@plantstore/gateway/internal/messages/json";
import { JsonValueReader, readMessages } from "@plantstore/gateway/internal/protocols";
import { findProtoField } from "@plantstore/gateway/rest";
import { readPieces, wrongType } from "./answer-body.ts";
import { type ErrorStyle, readAnswerError } from "./answer-error.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { EventSplitter } from "./event-splitter.ts";
import type { RestRule } from "./rest-rule.ts";

/** What the stream of an answer is read with. */
export interface StreamReading {
  readonly rule: RestRule;
  readonly reader: AnswerReader;
  readonly errors: ErrorStyle;
  /** Bytes that a message may have. */
  readonly messageBytesMax: number;
}

/** Opens the stream of an answer. @throws ConnectError `Unknown` for a body that is no stream of messages, such as HTML */
export function readAnswerStream(response: Response, reading: StreamReading): AsyncIterable<Message> {
  const { reader } = reading;
  const type = response.headers.get("content-type") ?? "";
  if (reader.readRaw !== undefined) return readBytes(response, reader.readRaw, type);
  if (/^text\/event-stream[\t ]*(?:;|$)/i.test(type)) return readEvents(response, reading);
  if (/^text\/(?!plain|json)|^application\/xhtml/i.test(type)) {
    throw wrongType(response.headers, "a stream of JSON or events");
  }
  return readValues(response, type, reading);
}

async function* readBytes(
  response: Response,
  readRaw: (bytes: Uint8Array, contentType: string) => Message,
  type: string,
): AsyncGenerator<Message, void> {
  // As a stream of bytes is sent: its first message says what it is.
  let contentType = type;
  for await (const piece of readPieces(response.body)) {
    yield readRaw(piece, contentType);
    contentType = "";
  }
}

async function* readEvents(response: Response, reading: StreamReading): AsyncGenerator<Message, void> {
  const splitter = new EventSplitter(reading.messageBytesMax);
  for await (const { name, data } of readMessages(readPieces(response.body), splitter)) {
    if (name === "end") return;
    if (name === "error") throw errorOf(data, response, reading.errors);
    // An EventSource gives nothing else to a program that listens to messages.
    if (name === "message") yield reading.reader.readJson(data);
  }
}

async function* readValues(
  response: Response,
  type: string,
  { rule, reader, errors, messageBytesMax }: StreamReading,
): AsyncGenerator<Message, void> {
  // One JSON value on each line is a sequence of values, too.
  const areLines = /^application\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)\b/i.test(type);
  let wrappers: readonly string[] | undefined;
  const start: Start = { byte: undefined };
  for await (const value of splitValues(response, start, areLines, messageBytesMax)) {
    wrappers ??= wrappersOf(rule, areLines || start.byte === openBracket);
    const wrapped = unwrap(decoder.decode(value), wrappers);
    if (wrapped === undefined) yield reader.readJson(value);
    else if (wrapped.name === "result") yield reader.readJson(wrapped.value);
    else throw errorOf(wrapped.value, response, errors);
  }
}

/** What a body begins with. */
interface Start {
  byte: number | undefined;
}

const openBracket = 0x5b;

/** Yields the values of a body. @throws ConnectError `Internal` for an array that is none */
async function* splitValues(
  response: Response,
  start: Start,
  areLines: boolean,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void> {
  const values = { read: (value: Uint8Array) => value, end: () => undefined };
  const splitter = new JsonValueReader<Uint8Array>(bytesMax, values, !areLines);
  try {
    yield* readMessages(noteStart(readPieces(response.body), start), splitter);
  } catch (error) {
    const found = ConnectError.from(error);
    // What would be a client's mistake in a request is the server's here.
    if (found.code !== Code.InvalidArgument) throw error;
    throw new ConnectError(`the response is not valid: ${found.rawMessage}`, Code.Internal);
  }
}

async function* noteStart(pieces: AsyncIterable<Uint8Array>, start: Start): AsyncGenerator<Uint8Array, void> {
  for await (const piece of pieces) {
    start.byte ??= piece.find((byte) => byte > 0x20);
    yield piece;
  }
}

const decoder = new TextDecoder();

/** Returns the members that hold a message or an error: not those that a message may have itself. */
function wrappersOf({ method, pattern }: RestRule, mayBePlain: boolean): readonly string[] {
  const { output } = method;
  const field = findProtoField(output, pattern.responseBody);
  const type = field === undefined ? output : field.message;
  const isAmbiguous = (name: string): boolean =>
    field?.fieldKind === "map" ||
    (type !== undefined && (anyJson.has(type.typeName) || findField(type, name) !== undefined));
  // Values of `application/json` that are no array are what grpc-gateway sends, whose messages are always wrapped.
  return ["@error", "error", "result"].filter((name) => !mayBePlain || !isAmbiguous(name));
}

// Not google.protobuf.Any: its JSON has a member besides.
const anyJson: ReadonlySet<string> = new Set(["google.protobuf.Struct", "google.protobuf.Value"]);

const wrapperStart = /^[\s]*\{[\s]*"(@error|error|result)"[\s]*:/;

/** Returns the value of the only member of an object, as text so that no number is rounded, if that is a wrapper. */
function unwrap(
  text: string,
  wrappers: readonly string[],
): { readonly name: string; readonly value: string } | undefined {
  const [start = "", name = ""] = wrapperStart.exec(text) ?? [];
  if (!wrappers.includes(name)) return undefined;
  try {
    const whole: JsonValue = JSON.parse(text);
    if (typeof whole !== "object" || whole === null || Object.keys(whole).length !== 1) return undefined;
  } catch {
    return undefined;
  }
  return { name, value: text.slice(start.length, text.lastIndexOf("}")) };
}

function errorOf(json: string, response: Response, errors: ErrorStyle): ConnectError {
  let record: JsonValue | undefined;
  try {
    record = JSON.parse(json);
  } catch {
    record = undefined;
  }
  return readAnswerError(record, response.status, response.headers, errors);
}
