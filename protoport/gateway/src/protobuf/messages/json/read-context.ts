import type { DescField, DescMessage, MessageShape, Registry } from "@bufbuild/protobuf";
import type { NamedOption } from "../../../http/index.ts";
import type { PathStep, UnknownNames } from "./field-problem.ts";
import type { FieldValues } from "./field-values.ts";
import type { JsonScanner } from "./json-scanner.ts";

/**
 * The fields that one part of a request sets, and that the other parts must not set. The value is `"whole"` for the
 * complete field, or a map of the fields inside it. Keys are descriptors, because clients may use proto or JSON names.
 */
export type BoundFields = ReadonlyMap<DescField, "whole" | BoundFields>;

/** Notes about a PATCH request's body, from which the update mask is created. */
export interface FieldNotes {
  /** The paths to the fields that the body sets, as in a field mask. A list, map or Any counts as one field. */
  readonly paths: string[];
  /** Number of fields in the body that repeat a value from the URL path. */
  repeated: number;
}

/** The state while a JSON text is read. Readers pass the state to each other. */
export interface ReadContext {
  readonly scanner: JsonScanner;
  /** Whether unknown fields and enum names are refused rather than skipped. */
  readonly rejectUnknown: boolean;
  /** The option that makes the server accept unknown fields and enum names. */
  readonly unknownOption: NamedOption;
  /** Whether integers must be in canonical form. */
  readonly canonicalIntegers: boolean;
  /** The types that a google.protobuf.Any may contain. */
  readonly registry: Registry | undefined;
  /** The unknown fields and enum names found so far. */
  readonly unknown: UnknownNames;
  /** The path to the value being read, or to the problem after a reader has thrown. */
  readonly path: PathStep[];
  /**
   * Whether the body may repeat a field that the URL path sets, with the same value. If `false`, a field that the URL
   * path sets is refused or ignored in the body. `undefined` for a stream message, to which the option does not apply.
   */
  readonly sameAsBound: boolean | undefined;
  readonly notes: FieldNotes | undefined;
  readonly messages: MessageReaders;
  /** Number of google.protobuf.Any that enclose the value being read. */
  anyDepth: number;
  /** The `@type` of each google.protobuf.Any that is read later, by the object's position in the text. */
  typeUrls: Map<number, string> | undefined;
}

/** Returned for an unknown enum name that is ignored. A field with this value counts as not set. */
export const absentValue: unique symbol = Symbol("absent");

/** Reads the next value and returns it as a protobuf-es message stores it, or {@link absentValue}. */
export type ValueReader<Value = unknown> = (context: ReadContext) => Value;

/** The readers for message types. They are in the context because modules with readers must not import in circles. */
export interface MessageReaders {
  /** Returns a message type's reader. If the type has its own JSON form, the reader reads that form. */
  readerOf(desc: DescMessage): ValueReader;
  /** Reads a JSON object field by field, even if the message type has another JSON form. */
  readFields<Desc extends DescMessage>(
    context: ReadContext,
    desc: Desc,
    options?: ReadFieldsOptions,
  ): MessageShape<Desc>;
}

/** Options for {@link MessageReaders.readFields}. */
export interface ReadFieldsOptions {
  /** The fields that the URL path has set. */
  readonly bound?: BoundFields | undefined;
  /** The message in which the URL path has set the bound fields. Defaults to a new message. */
  readonly into?: unknown;
  /** A key that is not a field, such as `@type` in a google.protobuf.Any. */
  readonly ignoredKey?: string;
}

/** Reads one message field. A reader is created once per field descriptor. */
export interface FieldReader {
  readonly field: DescField;
  /** Whether JSON `null` is a value for this field. For other fields, `null` means that the field is not set. */
  readonly nullIsValue: boolean;
  /** Reads the next value into the message, and returns the value. */
  read(context: ReadContext, fields: FieldValues, bound: BoundFields | undefined): unknown;
}
