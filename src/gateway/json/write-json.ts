import type { DescField, DescMessage, JsonObject, JsonValue, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import { createFieldWriter, writeField } from "./field-writer.ts";
import { createMadeWriters, writeQuickly } from "./made-writer.ts";
import { createMessageWriters } from "./message-writer.ts";
import { oncePer } from "./once-per.ts";
import type { JsonStyle, ToJson } from "./write-context.ts";

/** Options of {@link createJsonMessageWriter}: those of Connect. */
export type WriteJsonOptions = Partial<JsonWriteOptions>;

const noOptions: WriteJsonOptions = {};

/**
 * Creates the function that writes messages of a type as proto3 JSON text: 64-bit integers as strings, fields that are
 * not set left out, field masks as {@link printFieldMask} writes them. It is compiled when it is first called.
 *
 * The function throws an Error when a message cannot be written, which is the handler's fault: a Timestamp out of
 * range, an Any whose type is not in the registry, a field mask with an empty path, a number in a field of text.
 */
export function createJsonMessageWriter(
  desc: DescMessage,
  options: JsonStyle = noOptions,
): (message: Message) => string {
  const { exact, made } = writersOf(options);
  return (message) => {
    const quick = made.of(desc);
    const written = quick && writeQuickly(quick, message);
    return written?.text ?? exact.of(desc).write(message);
  };
}

/**
 * Creates the function that writes one field of a message; it returns `undefined` when the field would be left out.
 *
 * Other fields are ignored, so that none of them can make the writing fail.
 */
export function createJsonFieldWriter(field: DescField, options: JsonStyle): (message: Message) => string | undefined {
  const { exact, made } = writersOf(options);
  const writer = createFieldWriter(field, exact);
  let quick: ToJson | undefined;
  return (message) => {
    const written = (quick ??= made.ofField(field)) && writeQuickly(quick, message);
    return written === undefined ? writeField(writer, message) : written.text;
  };
}

/** Writes a message as a google.protobuf.Any: with its type, and under `value` if the type has its own JSON form. */
export function anyToJson(typeUrl: string, desc: DescMessage, message: Message, options: WriteJsonOptions): JsonObject {
  const json: JsonValue = JSON.parse(writersOf(options).exact.of(desc).writeAny(typeUrl, message));
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json;
  throw new TypeError("an Any is an object");
}

// What is compiled is kept as long as its options, which a gateway has one object of.
const writersOf = oncePer((options: JsonStyle) => ({
  exact: createMessageWriters(options),
  made: createMadeWriters(options),
}));
