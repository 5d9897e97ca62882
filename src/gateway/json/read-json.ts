/**
 * Is this text that message? Strict proto3 JSON, read straight from the source text.
 *
 * Flow: bytes → UTF-8 text → tokens (json-scanner) → fields by descriptor (message-reader, field-reader,
 * scalar-readers, well-known-readers) → message. This room knows nothing of URLs, sockets or services.
 */
import type { DescField, DescMessage, Message, MessageShape, Registry } from "@bufbuild/protobuf";
import { isMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { createFieldReader } from "./field-reader.ts";
import { fieldsOf } from "./field-store.ts";
import { FieldProblem, quote } from "./field-problem.ts";
import { JsonScanner } from "./json-scanner.ts";
import { messageReaders } from "./message-reader.ts";
import type { ForbiddenFields, ReadContext } from "./read-context.ts";

/** How strictly a JSON text is read. */
export interface ReadJsonOptions {
  /** What to do about fields and enum names that the descriptor does not have. Default `"reject"`. */
  readonly unknownFields?: "reject" | "ignore";
  /**
   * Takes an integer in its canonical digits only, as a string or as a number. Otherwise every spelling
   * that the mapping allows is taken where it is exact: `7`, `"7"`, `7.0`, `1e3`.
   */
  readonly canonicalIntegers?: boolean;
  /** The message types that a google.protobuf.Any may hold. Without it only `{}` is one. */
  readonly registry?: Registry;
}

/** What a text said: the message, and what of it the message could not hold. */
export interface JsonReading<Desc extends DescMessage> {
  readonly message: MessageShape<Desc>;
  /** Paths of the fields that were ignored; empty where unknown fields are refused. */
  readonly ignored: readonly string[];
}

/** Most unknown fields that one error message names; the others are counted. */
const namesMax = 16;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a message from JSON text, exactly: an int64 never passes through a double, and what RFC 8259
 * or the proto3 JSON mapping leaves doubtful is refused (duplicate keys under whatever name, lone
 * surrogates, bad UTF-8, trailing text, nesting beyond 100 levels, two members of a oneof).
 *
 * A field that is left out or `null` is absent, which is not the same as zero where presence counts.
 *
 * @throws ConnectError `InvalidArgument` whose message names the field
 *
 * @example
 * ```ts
 * readJson(DeletePlantRequestSchema, '{"id":"9007199254740993"}').id; // 9007199254740993n
 * ```
 */
export function readJson<Desc extends DescMessage>(
  desc: Desc,
  json: Uint8Array | string,
  options: ReadJsonOptions = {},
): MessageShape<Desc> {
  return readJsonReport(desc, json, options).message;
}

/**
 * Like {@link readJson}, and says which fields were ignored.
 *
 * @param forbidden - fields that the text must not set
 */
export function readJsonReport<Desc extends DescMessage>(
  desc: Desc,
  json: Uint8Array | string,
  options: ReadJsonOptions,
  forbidden?: ForbiddenFields,
): JsonReading<Desc> {
  return readText(json, options, (context) => {
    if (!hasCustomJsonRepresentation(desc)) return context.messages.readFields(context, desc, forbidden);
    const message = context.messages.readerOf(desc)(context);
    if (!isMessage(message, desc)) throw new TypeError(`the reader of ${desc.typeName} made something else`);
    return message;
  });
}

/** Reads the value of one field into a message, and says which fields were ignored. */
export type JsonFieldReader = (
  message: Message,
  json: Uint8Array | string,
  options: ReadJsonOptions,
) => readonly string[];

/**
 * Makes the reader of a field that is a whole JSON text: the body of a rule that names a body field. `null`
 * leaves the field unset, as it would inside of a message.
 *
 * The reader throws a `ConnectError` of `InvalidArgument` whose message names the field.
 *
 * @param forbidden - fields below this one that the text must not set
 */
export function createJsonFieldReader(field: DescField, forbidden?: ForbiddenFields): JsonFieldReader {
  const reader = createFieldReader(field);
  const read = (context: ReadContext, message: Message): void => {
    try {
      if (reader.nullIsValue || context.scanner.peek() !== "null") reader.read(context, fieldsOf(message), forbidden);
      else context.scanner.readLiteral("null");
    } catch (error) {
      throw error instanceof FieldProblem ? error.insideField(field.name) : error;
    }
  };
  return (message, json, options) => readText(json, options, (context) => read(context, message)).ignored;
}

function readText<Value>(
  json: Uint8Array | string,
  options: ReadJsonOptions,
  read: (context: ReadContext) => Value,
): { readonly message: Value; readonly ignored: readonly string[] } {
  const rejectUnknown = options.unknownFields !== "ignore";
  try {
    const context: ReadContext = {
      scanner: new JsonScanner(toText(json)),
      rejectUnknown,
      canonicalIntegers: options.canonicalIntegers === true,
      registry: options.registry,
      unknown: [],
      messages: messageReaders,
      anyDepth: 0,
    };
    const message = read(context);
    context.scanner.finish();
    if (rejectUnknown && context.unknown.length > 0) throw new FieldProblem(describeUnknown("field", context.unknown));
    return { message, ignored: context.unknown };
  } catch (error) {
    if (error instanceof FieldProblem) throw new ConnectError(error.describe(), Code.InvalidArgument);
    throw error;
  }
}

/** The sentence that refuses names nobody knows: all of them, up to 16, so that one round trip tells the client everything. */
export function describeUnknown(noun: string, names: readonly string[]): string {
  const named = names.slice(0, namesMax).map(quote).join(", ");
  const more = names.length - namesMax;
  return `unknown ${noun}${names.length > 1 ? "s" : ""} ${named}${more > 0 ? ` and ${more} more` : ""}`;
}

function toText(json: Uint8Array | string): string {
  if (typeof json === "string") {
    if (json.isWellFormed()) return json;
    throw new FieldProblem("not JSON: a lone surrogate in the text");
  }
  try {
    return utf8.decode(json);
  } catch {
    throw new FieldProblem("not JSON: the bytes are not UTF-8");
  }
}
