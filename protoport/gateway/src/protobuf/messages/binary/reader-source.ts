import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { isKeptAsJson, isWrapped, type MessageField, messageWireType, scalarOf, wireTypeOf } from "./wire-types.ts";
import { isInherited, literal, switchSource } from "../codegen.ts";

/** Assigns names to the values that a reader's generated source uses. */
interface ReaderNames {
  name(value: unknown): string;
  /** Returns the name for a message type's reader. */
  reader(desc: DescMessage): string;
}

/**
 * Generates the function `(source, message, end, endTag)` that reads a type's fields into a message, up to the offset
 * `end`. A group ends earlier, with the tag `endTag`. For other messages, `endTag` is -1. The function appends items to
 * existing lists, and merges fields into existing messages.
 *
 * In the generated source, `at` is the offset at which the next read starts. `at` may exceed `end`, or become NaN after
 * the last byte. The generated source therefore checks `at` after the loop. The length of a string or list is checked
 * before its content is read.
 */
export function generateReader(desc: DescMessage, names: ReaderNames): string {
  const cases = desc.fields.flatMap((field) => new FieldReaderSource(field, names).cases());
  const numbers = names.name(new Set(desc.fields.map(({ number }) => number)));
  return `function (source, message, end, endTag) {
  const bytes = source.bytes;
  let at = source.at, tag = 0, length = 0, stop = 0, start = 0, child, value, key, entry;
  if (--source.depthLeft < 0) throw bailOut;
  while (at < end) {
    start = at;
    tag = bytes[at++];
    if (tag > 127) { ${slowPathCall("tag", "readUnsigned")} }
    ${switchSource("tag", new Map(cases), unknownTagSource(numbers), (value) => names.name(value))}
  }
  if (at !== end || endTag !== -1) throw bailOut;
  source.at = at;
  source.depthLeft++;
}`;
}

/** Returns statements that handle a tag that no field declares. */
function unknownTagSource(numbers: string): string {
  return `source.at = at;
if (tag === endTag) { source.depthLeft++; return; }
// The field is known, but its wire type is not the declared one.
if (${numbers}.has(tag >>> 3)) throw bailOut;
readUnknown(source, message, tag);
at = source.at;`;
}

/** Returns statements that read a value longer than one byte. Before these statements, `at` is after the first byte. */
function slowPathCall(variable: string, read: string): string {
  return `source.at = at - 1; ${variable} = ${read}(source); at = source.at;`;
}

/** Returns statements that read a length, and check that enough bytes remain. */
function lengthSource(end: string): string {
  // equivalent mutant: the result is the same without the check, after reading past the end.
  return `length = bytes[at++];
if (length > 127) { ${slowPathCall("length", "readUnsigned")} }
if (length > ${end} - at) throw bailOut;
`;
}

type TagCase = [tag: number, statements: string];

class FieldReaderSource {
  readonly #field: DescField;
  readonly #names: ReaderNames;
  /** The message's property that holds the field or the field's oneof. */
  readonly #property: string;

  constructor(field: DescField, names: ReaderNames) {
    this.#field = field;
    this.#names = names;
    this.#property = `message[${literal((field.oneof ?? field).localName)}]`;
  }

  /** Returns the statements that read the field, by tag. */
  cases(): TagCase[] {
    const field = this.#field;
    switch (field.fieldKind) {
      case "map":
        return [this.#case(WireType.LengthDelimited, this.#entry(field))];
      case "list":
        return this.#listCases(field);
      case "message":
        return [this.#case(messageWireType(field), this.#message(field, this.#beforeSource()) + this.#setSource())];
      default:
        return [this.#case(wireTypeOf(scalarOf(field)), this.#value(field, "end") + this.#setSource())];
    }
  }

  #listCases(field: DescField & { fieldKind: "list" }): TagCase[] {
    const pushValue = `${this.#property}.push(value);`;
    if (field.listKind === "message")
      return [this.#case(messageWireType(field), this.#message(field, "undefined") + pushValue)];
    const wireType = wireTypeOf(scalarOf(field));
    const singleValueCase = this.#case(wireType, this.#value(field, "end") + pushValue);
    if (wireType === WireType.LengthDelimited) return [singleValueCase];
    // Parsers accept packed and unpacked values, regardless of the declaration.
    const packed = `${lengthSource("end")}stop = at + length;
entry = ${this.#property};
while (at < stop) { ${this.#value(field, "stop")}entry.push(value); }
if (at !== stop) throw bailOut;`;
    return [singleValueCase, this.#case(WireType.LengthDelimited, packed)];
  }

  #case(wireType: WireType, statements: string): TagCase {
    return [((this.#field.number << 3) | wireType) >>> 0, `${statements}\ncontinue;`];
  }

  /** Returns an expression for the field's current value. */
  #beforeSource(): string {
    const { oneof, localName } = this.#field;
    if (oneof !== undefined)
      return `(${this.#property}.case === ${literal(localName)} ? ${this.#property}.value : undefined)`;
    // Without `hasOwn`, the message would be merged into a method that every object inherits.
    return isInherited(localName)
      ? `(hasOwn(message, ${literal(localName)}) ? ${this.#property} : undefined)`
      : this.#property;
  }

  #setSource(): string {
    const { oneof, localName } = this.#field;
    const value = oneof === undefined ? "value" : `{ case: ${literal(localName)}, value }`;
    return `${this.#property} = ${value};`;
  }

  /** Returns statements that read a scalar or an enum into `value`. */
  #value(field: DescField, end: string): string {
    if (field.enum !== undefined) {
      const read = scalarSource(ScalarType.INT32, end);
      if (field.enum.open) return read;
      // If a closed enum does not declare a number, protobuf-es decides whether to keep the number as an unknown field.
      const numbers = this.#names.name(new Set(field.enum.values.map(({ number }) => number)));
      return `${read}if (!${numbers}.has(value)) throw bailOut;\n`;
    }
    const isString = "longAsString" in field && field.longAsString;
    return scalarSource(scalarOf(field), end) + (isString ? "value = String(value);\n" : "");
  }

  /** Returns statements that read a message into `value`, merged into the current value (`before`), if any. */
  #message(field: MessageField, before: string): string {
    const { message: desc, number } = field;
    const reader = this.#names.reader(desc);
    if (isKeptAsJson(field)) return this.#withProtobufEs(field, before);
    const [end, endTag] =
      messageWireType(field) === WireType.StartGroup
        ? ["end", literal(((number << 3) | WireType.EndGroup) >>> 0)]
        : ["at + length", "-1"];
    const length = endTag === "-1" ? lengthSource(field.fieldKind === "map" ? "stop" : "end") : "";
    const read = `source.at = at; ${reader}.read(source, child, ${end}, ${endTag}); at = source.at;\n`;
    if (!isWrapped(field))
      return `${length}child = ${before}; if (child === undefined) child = new ${reader}.Message();\n${read}value = child;\n`;
    const inner = `child[${literal(desc.fields[0]?.localName ?? "")}]`;
    return `${length}child = new ${reader}.Message(); value = ${before}; if (value !== undefined) ${inner} = value;
${read}value = ${inner};\n`;
  }

  /** Returns statements that read this field with protobuf-es, through a temporary message. */
  #withProtobufEs(field: MessageField, before: string): string {
    const parent = this.#names.name(field.parent);
    const isGroup = messageWireType(field) === WireType.StartGroup;
    const property = this.#property.replace("message", "child");
    const inner = field.fieldKind === "list" ? `${property}[0]` : property;
    return `if (${before} !== undefined || ${String(isGroup)}) throw bailOut;
${lengthSource("end")}at += length;
child = readFieldWithProtobufEs(${parent}, source, start, at);
value = ${field.oneof === undefined ? inner : `${property}.value`};\n`;
  }

  /** Returns statements that read a map entry, which is a message with key = 1 and value = 2 (protobuf.dev, "Maps"). */
  #entry(field: DescField & { fieldKind: "map" }): string {
    if (isKeptAsJson(field)) return "throw bailOut;";
    const keyTag = literal((1 << 3) | wireTypeOf(field.mapKey));
    const isMessage = field.mapKind === "message";
    const valueTag = literal((2 << 3) | (isMessage ? WireType.LengthDelimited : wireTypeOf(scalarOf(field))));
    const value = isMessage ? this.#message(field, "entry") : this.#value(field, "stop");
    return `${lengthSource("end")}stop = at + length; key = undefined; entry = undefined;
while (at < stop) {
tag = bytes[at++];
if (tag === ${keyTag}) { ${scalarSource(field.mapKey, "stop")}key = value; }
else if (tag === ${valueTag}) { ${value}entry = value; }
else throw bailOut;
}
if (at !== stop || key === "__proto__") throw bailOut;
${this.#property}[key === undefined ? ${zeroSource(field.mapKey)} : key] = entry === undefined ? ${this.#zeroValue(field)} : entry;`;
  }

  #zeroValue(field: DescField & { fieldKind: "map" }): string {
    if (field.mapKind === "message") return `new ${this.#names.reader(field.message)}.Message()`;
    if (field.mapKind === "enum") return literal(field.enum.values[0]?.number ?? 0);
    return zeroSource(field.scalar);
  }
}

function zeroSource(scalar: ScalarType): string {
  switch (scalar) {
    case ScalarType.STRING:
      return '""';
    case ScalarType.BOOL:
      return "false";
    case ScalarType.BYTES:
      return "new Uint8Array(0)";
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return "0n";
    default:
      return "0";
  }
}

/** Returns statements that read a scalar into `value`. */
function scalarSource(scalar: ScalarType, end: string): string {
  switch (scalar) {
    case ScalarType.STRING:
      return `${lengthSource(end)}value = readString(bytes, at, length); at += length;\n`;
    case ScalarType.BYTES:
      return `${lengthSource(end)}value = bytes.subarray(at, at + length); at += length;\n`;
    case ScalarType.BOOL:
      return varintReaderSource("readBool", "value = value !== 0;");
    case ScalarType.UINT32:
      return `${varintReaderSource("readVarint32")}value >>>= 0;\n`;
    case ScalarType.SINT32:
      return `${varintReaderSource("readVarint32")}value = (value >>> 1) ^ -(value & 1);\n`;
    case ScalarType.INT64:
      return varintReaderSource("readInt64", "value = smallIntegers[value];");
    case ScalarType.UINT64:
      return varintReaderSource("readUint64", "value = smallIntegers[value];");
    case ScalarType.SINT64:
      return `at++; ${slowPathCall("value", "readSint64")}\n`;
    case ScalarType.FIXED32:
      return fixedSource("getUint32", 4);
    case ScalarType.SFIXED32:
      return fixedSource("getInt32", 4);
    case ScalarType.FLOAT:
      return fixedSource("getFloat32", 4);
    case ScalarType.FIXED64:
      return fixedSource("getBigUint64", 8);
    case ScalarType.SFIXED64:
      return fixedSource("getBigInt64", 8);
    case ScalarType.DOUBLE:
      return fixedSource("getFloat64", 8);
    default:
      return varintReaderSource("readVarint32");
  }
}

function varintReaderSource(read: string, ofOneByte = ""): string {
  return `value = bytes[at++];\nif (value > 127) { ${slowPathCall("value", read)} } else { ${ofOneByte} }\n`;
}

function fixedSource(read: string, length: number): string {
  return `value = source.view.${read}(at, true); at += ${String(length)};\n`;
}
