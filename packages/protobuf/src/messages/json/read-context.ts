import type { DescField, DescMessage, MessageShape, Registry } from "@bufbuild/protobuf";
import type { NamedOption } from "@plantstore/http";
import type { PathStep } from "./field-problem.ts";
import type { FieldValues } from "./field-values.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { UnknownNames } from "./unknown-names.ts";

/**
 * The fields that one part of a request sets, and that the other parts must not set. `"whole"` means the complete
 * field. A map means only some of the fields inside it.
 *
 * The keys are descriptors, because a client may use a field's proto name or its JSON name.
 */
export type BoundFields = ReadonlyMap<DescField, "whole" | BoundFields>;

/** What is noted about a PATCH's body, for the update mask. */
export interface FieldNotes {
  /** The paths to the fields that the text sets, as in a field mask. A list, map or Any counts as one field. */
  readonly paths: string[];
  /** How many fields repeat a value from the path. */
  repeated: number;
}

/** The state while one text is read, passed from reader to reader. */
export interface ReadContext {
  readonly scanner: JsonScanner;
  /** Whether unknown fields and enum names are refused. Otherwise they are skipped. */
  readonly rejectUnknown: boolean;
  /** The option that accepts unknown names. */
  readonly unknownOption: NamedOption;
  /** Whether integers must be in canonical form. */
  readonly canonicalIntegers: boolean;
  /** The types that a google.protobuf.Any may contain. */
  readonly registry: Registry | undefined;
  /** The unknown fields and enum names found so far. */
  readonly unknown: UnknownNames;
  /** The path to the value being read. After a reader has thrown, the path to the problem. */
  readonly path: PathStep[];
  /**
   * Whether bound fields may have the value that the path sets. Otherwise they are refused or ignored. `undefined` for
   * a stream message, to which the option does not apply.
   */
  readonly sameAsBound: boolean | undefined;
  readonly notes: FieldNotes | undefined;
  readonly messages: MessageReaders;
  /** How many google.protobuf.Any enclose the value being read. */
  anyDepth: number;
  /** The `@type` for each google.protobuf.Any that was skipped and is read later, by its object's position. */
  typeUrls: Map<number, string> | undefined;
}

/** Returned for an unknown enum name that is ignored: the field counts as not set. */
export const absentValue: unique symbol = Symbol("absent");

/** Reads the next value and returns it as a protobuf-es message stores it, or {@link absentValue}. */
export type ValueReader<Value = unknown> = (context: ReadContext) => Value;

/**
 * The readers for message types. They are part of the context because the files with readers need each other and must
 * not import in circles. A field can hold a message, and a google.protobuf.Any holds any message.
 */
export interface MessageReaders {
  /** Returns a message type's reader. If the type has its own JSON form, the reader reads that form. */
  readerOf(desc: DescMessage): ValueReader;
  /** Reads a JSON object field by field, even if its type has another JSON form. */
  readFields<Desc extends DescMessage>(
    context: ReadContext,
    desc: Desc,
    options?: ReadFieldsOptions,
  ): MessageShape<Desc>;
}

/** Options for {@link MessageReaders.readFields}. */
export interface ReadFieldsOptions {
  /** Fields that the path has set. */
  readonly bound?: BoundFields | undefined;
  /** The message in which the path has set them. Defaults to a new one. */
  readonly into?: unknown;
  /** A key that is not a field: `@type` inside google.protobuf.Any. */
  readonly ignoredKey?: string;
}

/** Reads one message field; created once per descriptor. */
export interface FieldReader {
  readonly field: DescField;
  /** Whether JSON `null` is a value for this field. For all other fields it means that the field is not set. */
  readonly nullIsValue: boolean;
  /** Reads the next value into the message. */
  read(context: ReadContext, fields: FieldValues, bound: BoundFields | undefined): void;
}
