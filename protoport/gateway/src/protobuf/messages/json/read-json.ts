import type { DescField, DescMessage, JsonValue, Message, MessageShape } from "@bufbuild/protobuf";
import { isMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "./custom-form.ts";
import { bailOut, canCompile } from "../codegen.ts";
import { createFieldReader } from "./field-reader.ts";
import { asFieldValues, createFieldSetter, type FieldValues } from "./field-values.ts";
import { createCompiledReaders, type CompiledReaders } from "./compiled-reader.ts";
import { parsePlain, type ReadState } from "./parse-plain.ts";
import type { PlainReader } from "./plain-values.ts";
import { readExactField, readExactText, type TextRules, toText } from "./read-exact.ts";
import type { ReadServiceJsonOptions } from "./read-options.ts";
import type { BoundFields, FieldNotes, ReadContext } from "./read-context.ts";
import { findField } from "./names.ts";
import { requireMessageFields } from "./required-fields.ts";
import { UnknownNames } from "./field-problem.ts";

/** A message that was read from JSON, and the unknown names that were ignored. */
export interface JsonReadResult<Desc extends DescMessage> {
  readonly message: MessageShape<Desc>;
  /** The unknown names that were ignored. Empty if unknown fields are refused. */
  readonly ignored: UnknownNames;
}

/**
 * Reads a message from JSON text. An int64 never passes through a double. Text that is ambiguous by RFC 8259 or the
 * proto3 JSON mapping is refused, such as a field that is set twice by any of its names, two oneof members, lone
 * surrogates, invalid UTF-8, trailing text or more than 100 levels.
 *
 * A field that is missing or `null` is not set. A field with presence that is not set differs from zero.
 *
 * @throws ConnectError `InvalidArgument` whose message names the field
 *
 * @example
 * ```ts
 * readJson(DeleteOrderRequestSchema, '{"id":"9007199254740993"}').id; // 9007199254740993n
 * ```
 */
export function readJson<Desc extends DescMessage>(
  desc: Desc,
  json: Uint8Array | string,
  options: ReadServiceJsonOptions = {},
): MessageShape<Desc> {
  const { message } = readPartialJson(desc, json, options);
  requireMessageFields(desc, message);
  return message;
}

/** Restrictions on a request body because of the fields in the HTTP rule's path. */
export interface BodyRules {
  /** The fields that the URL path has set. */
  readonly bound: BoundFields;
  /** Whether the body may repeat the bound fields with the same value. Otherwise the body must not contain them. */
  readonly sameAsBound: boolean | undefined;
}

const noRules: BodyRules = { bound: new Map(), sameAsBound: false };

/**
 * Reads a message that may be only a part of a request. Required fields may be missing. Returns the ignored names, too.
 *
 * @param into - the message in which the URL path has set fields; not supported for a type with its own JSON form
 * @param notes - collects the paths of fields that the text sets
 */
export function readPartialJson<Desc extends DescMessage>(
  desc: Desc,
  json: Uint8Array | string,
  options: ReadServiceJsonOptions,
  { bound, sameAsBound }: BodyRules = noRules,
  into?: Message,
  notes?: FieldNotes,
): JsonReadResult<Desc> {
  return readText(
    json,
    options,
    { sameAsBound, notes },
    (context) => {
      if (!hasCustomJsonRepresentation(desc)) return context.messages.readFields(context, desc, { bound, into });
      return asMessageOf(desc, context.messages.readerOf(desc)(context));
    },
    (readers) => readers.readerOf(desc),
    (value, plain) => {
      const message = asMessageOf(desc, value);
      return into === undefined ? message : mergeInto(desc, asMessageOf(desc, into), message, plain, bound);
    },
  );
}

/** Reads one field's value into a message, and returns the ignored names. */
export type JsonFieldReader = (message: Message, json: Uint8Array, notes?: FieldNotes) => UnknownNames;

/**
 * Creates the reader for HTTP rules that name a body field. The complete text is then the field's value. `null` leaves
 * the field unset. The reader throws a `ConnectError` with `InvalidArgument` that names the field.
 */
export function createJsonFieldReader(
  field: DescField,
  options: ReadServiceJsonOptions,
  { bound, sameAsBound }: BodyRules,
): JsonFieldReader {
  const setField = createFieldSetter(field);
  const nestedBound = bound.get(field);
  const reader = createFieldReader(field);
  return (message, json, notes) =>
    readText(
      json,
      options,
      { sameAsBound, notes },
      (context) => readExactField(reader, nestedBound, context, message),
      (readers) => (nestedBound === undefined ? readers.readerOfField(field) : undefined),
      (value, plain) => {
        if (plain === null && !reader.nullIsValue) return;
        if (isOneofSet(message, field)) throw bailOut;
        setField(message, value);
      },
    ).ignored;
}

// The exact reader defines the result, and reads the text again whenever the fast path bails out.
function readText<Value>(
  json: Uint8Array | string,
  options: ReadServiceJsonOptions,
  rules: TextRules,
  readExactly: (context: ReadContext) => Value,
  readerOf: (readers: CompiledReaders) => PlainReader | undefined,
  take: (value: unknown, json: JsonValue) => Value,
): { readonly message: Value; readonly ignored: UnknownNames } {
  const readers = options.canonicalIntegers === true ? canonicalReaders : anySpellingReaders;
  const text = toText(json);
  // Only the exact reader notes which fields are set.
  const reader = rules.notes === undefined && canCompile(options) ? readerOf(readers) : undefined;
  const fastMessage = reader && readFastJson(text, readers.canonical, reader, take);
  if (fastMessage !== undefined) return { message: fastMessage.value, ignored: new UnknownNames() };
  return readExactText(text, options, rules, readExactly);
}

const anySpellingReaders = createCompiledReaders(false);
const canonicalReaders = createCompiledReaders(true);

function readFastJson<Value>(
  text: string,
  canonicalIntegers: boolean,
  reader: PlainReader,
  take: (value: unknown, json: JsonValue) => Value,
): { readonly value: Value } | undefined {
  const plain = parsePlain(text, canonicalIntegers);
  if (plain === undefined) return undefined;
  const state: ReadState = { strings: 0, mayHaveLoneSurrogates: plain.mayHaveLoneSurrogates };
  try {
    const value = reader.read(plain.value, state);
    // The counts differ if the text has a duplicate name.
    return state.strings === plain.strings ? { value: take(value, plain.value) } : undefined;
  } catch {
    // If the text has a problem, the exact reader reports it.
    return undefined;
  }
}

// Moves the fields that the text has set into the message with the fields that the URL path has set.
function mergeInto<Shape extends Message>(
  desc: DescMessage,
  into: Shape,
  message: Message,
  json: JsonValue,
  bound: BoundFields,
): Shape {
  const from: FieldValues = message;
  const target: FieldValues = into;
  const fields = Object.keys(json ?? {}).flatMap((name) => findField(desc, name) ?? []);
  // All fields are checked before a field is moved, so that the message is unchanged after a bail-out.
  if (fields.some((field) => bound.has(field) || isOneofSet(target, field))) throw bailOut;
  for (const { localName, oneof } of fields) {
    const property = oneof?.localName ?? localName;
    if (Object.hasOwn(from, property)) target[property] = from[property];
  }
  return into;
}

function isOneofSet(fields: FieldValues, { oneof }: DescField): boolean {
  return oneof !== undefined && asFieldValues(fields[oneof.localName])["case"] !== undefined;
}

function asMessageOf<Desc extends DescMessage>(desc: Desc, value: unknown): MessageShape<Desc> {
  if (isMessage(value, desc)) return value;
  throw new TypeError(`the reader of ${desc.typeName} returned another type`);
}
