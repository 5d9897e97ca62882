import type { DescField, DescMessage, MessageShape, Registry } from "@bufbuild/protobuf";
import type { Fields } from "./field-store.ts";
import type { JsonScanner } from "./json-scanner.ts";

/**
 * Fields that a JSON text must not set, because something else does; a tree by field identity, so that
 * the proto name and the JSON name of a field are the same field. Where unknown fields are ignored, so are
 * these, otherwise they are refused: they never have an effect.
 *
 * `true` forbids the field whole, a nested map only the fields below it.
 */
export type ForbiddenFields = ReadonlyMap<DescField, true | ForbiddenFields>;

/** What one reading of a text carries from message to message. */
export interface ReadContext {
  readonly scanner: JsonScanner;
  /** Refuses what the descriptor does not have; otherwise it is skipped. */
  readonly rejectUnknown: boolean;
  /** Takes integers in their canonical spelling only. */
  readonly canonicalIntegers: boolean;
  /** Where the types of google.protobuf.Any are looked up. */
  readonly registry: Registry | undefined;
  /** The unknown fields met so far, as the client wrote them, each with its path from the message being read. */
  readonly unknown: string[];
  /** How messages inside of messages are read. */
  readonly messages: MessageReaders;
  /** How many google.protobuf.Any are open around the value being read. */
  anyDepth: number;
}

/**
 * Puts a field's name in front of the unknown fields that were met inside of it.
 *
 * Done on the way out, so that a message without unknown fields pays nothing for their paths.
 */
export function locateUnknown(context: ReadContext, firstInside: number, name: string): void {
  const { unknown } = context;
  for (let at = firstInside; at < unknown.length; at++) unknown[at] = `${name}.${unknown[at]}`;
}

/** Stands for a value that is as good as not there: an unknown enum name where unknown things are ignored. */
export const absent: unique symbol = Symbol("absent");

/** Reads the value that comes next and returns it as a protobuf-es message stores it, or {@link absent}. */
export type ValueReader<Value = unknown> = (context: ReadContext) => Value;

/**
 * The readers of message types. They travel in the context because they need each other: a message has
 * fields of message type, a google.protobuf.Any holds any message.
 */
export interface MessageReaders {
  /** The reader of a message type, in its special form where it has one. */
  readerOf(desc: DescMessage): ValueReader;
  /**
   * Reads a JSON object field by field, whatever special form its type might have.
   *
   * @param forbidden - fields that the text must not set, because the URL does
   * @param ignoredKey - a key that is no field: `@type` inside of google.protobuf.Any
   */
  readFields<Desc extends DescMessage>(
    context: ReadContext,
    desc: Desc,
    forbidden?: ForbiddenFields,
    ignoredKey?: string,
  ): MessageShape<Desc>;
}

/** How one field of a message is read; compiled once per descriptor. */
export interface FieldReader {
  readonly field: DescField;
  /** Whether JSON `null` is a value of this field. For all others it is as good as leaving the field out. */
  readonly nullIsValue: boolean;
  /** Reads the value that comes next into the message. */
  read(context: ReadContext, fields: Fields, forbidden: ForbiddenFields | undefined): void;
}
