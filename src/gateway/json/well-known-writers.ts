import { type DescMessage, isMessage, type MessageShape } from "@bufbuild/protobuf";
import {
  type Any,
  AnySchema,
  anyUnpack,
  DurationSchema,
  FieldMaskSchema,
  isWrapperDesc,
  type ListValue,
  ListValueSchema,
  type Struct,
  StructSchema,
  TimestampSchema,
  type Value,
  ValueSchema,
  type WktWrapperDesc,
} from "@bufbuild/protobuf/wkt";
import { printFieldMask } from "./field-mask.ts";
import { asFieldValues } from "./field-values.ts";
import { printDuration, printTimestamp } from "./times.ts";
import { createScalarWriter, type ValueWriter, writeFiniteNumber } from "./value-writers.ts";
import type { JsonStyle, MessageWriters } from "./write-context.ts";

/**
 * Creates the writer of a well-known type with its own JSON form; `undefined` for every other type. It is given
 * messages of that type.
 */
export function createWellKnownWriter(desc: DescMessage, writers: MessageWriters): ValueWriter | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Any":
      return writerOf(AnySchema, (any) => writeAny(any, writers));
    case "google.protobuf.Timestamp":
      return writerOf(TimestampSchema, (time) => `"${printTimestamp(time)}"`);
    case "google.protobuf.Duration":
      return writerOf(DurationSchema, (duration) => `"${printDuration(duration)}"`);
    case "google.protobuf.FieldMask":
      return writerOf(FieldMaskSchema, ({ paths }) => JSON.stringify(printFieldMask(paths)));
    case "google.protobuf.Struct":
      return writerOf(StructSchema, writeStruct);
    case "google.protobuf.Value":
      return writerOf(ValueSchema, writeValue);
    case "google.protobuf.ListValue":
      return writerOf(ListValueSchema, writeListValue);
    default:
      return isWrapperDesc(desc) ? createWrapperWriter(desc, writers.options) : undefined;
  }
}

function writerOf<Desc extends DescMessage>(desc: Desc, write: (message: MessageShape<Desc>) => string): ValueWriter {
  return (value) => {
    if (isMessage(value, desc)) return write(value);
    throw new TypeError(`not a ${desc.typeName}`);
  };
}

function createWrapperWriter(desc: WktWrapperDesc, options: JsonStyle): ValueWriter {
  const [inner] = desc.fields;
  const write = createScalarWriter(inner.scalar, options);
  return writerOf(desc, (wrapper) => write(asFieldValues(wrapper)[inner.localName]));
}

function writeAny(any: Any, writers: MessageWriters): string {
  if (any.typeUrl === "") return "{}";
  const { registry } = writers.options;
  const message = registry && anyUnpack(any, registry);
  const desc = message && registry?.getMessage(message.$typeName);
  if (desc === undefined) throw new Error(`the type ${JSON.stringify(any.typeUrl)} of an Any is not in the registry`);
  return writers.of(desc).writeAny(any.typeUrl, message);
}

function writeStruct({ fields }: Struct): string {
  const members = Object.entries(fields).map(([key, value]) => `${JSON.stringify(key)}:${writeValue(value)}`);
  return `{${members.join(",")}}`;
}

function writeListValue({ values }: ListValue): string {
  return `[${values.map(writeValue).join(",")}]`;
}

function writeValue({ kind }: Value): string {
  switch (kind.case) {
    case "nullValue":
      return "null";
    case "structValue":
      return writeStruct(kind.value);
    case "listValue":
      return writeListValue(kind.value);
    case "numberValue":
      return writeFiniteNumber(kind.value);
    case "boolValue":
    case "stringValue":
      return JSON.stringify(kind.value);
    default:
      throw new Error("a google.protobuf.Value has no value");
  }
}
