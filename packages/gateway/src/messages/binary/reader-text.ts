import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { isKeptAsJson, isWrapped, messageWireType, type MessageField, scalarOf } from "./fields.ts";
import { isInherited, literal, switchText } from "../codegen/index.ts";
import { wireTypeOf } from "./wire-types.ts";

/** Names for what the text of a reader refers to. */
export interface ReaderNames {
  name(value: unknown): string;
  /** Returns the name of the reader of a type, which has `Message`, a constructor, and `read`. */
  reader(desc: DescMessage): string;
}

/**
 * Returns the text of a function `(source, message, end, endTag)`, which reads the fields of a type into a message: up
 * to `end` or, of a group, through `endTag`, which is -1 otherwise. It appends to lists, and merges into messages.
 *
 * In the text, `at` is where the next read begins. It may run past `end`, or become NaN where there are no more bytes;
 * both are seen behind the loop. Whatever a text or a list is made of is checked before.
 */
export function readerText(desc: DescMessage, names: ReaderNames): string {
  const cases = desc.fields.flatMap((field) => new FieldText(field, names).cases());
  const numbers = names.name(new Set(desc.fields.map(({ number }) => number)));
  return `function (source, message, end, endTag) {
  const bytes = source.bytes;
  let at = source.at, tag = 0, length = 0, stop = 0, start = 0, child, value, key, entry;
  if (--source.depthLeft < 0) throw unsure;
  while (at < end) {
    start = at;
    tag = bytes[at++];
    if (tag > 127) { ${slow("tag", "readUnsigned")} }
    ${switchText("tag", new Map(cases), otherText(numbers), (value) => names.name(value))}
  }
  if (at !== end || endTag !== -1) throw unsure;
  source.at = at;
  source.depthLeft++;
}`;
}

/** Statements for a tag that no field has as it is declared. */
function otherText(numbers: string): string {
  return `source.at = at;
if (tag === endTag) { source.depthLeft++; return; }
// A field that is written in another way than it is declared.
if (${numbers}.has(tag >>> 3)) throw unsure;
readUnknown(source, message, tag);
at = source.at;`;
}

/** Statements for what one byte does not hold: `at` is behind its first byte. */
function slow(variable: string, read: string): string {
  return `source.at = at - 1; ${variable} = ${read}(source); at = source.at;`;
}

/** Statements that read a length, and look whether so much is there. */
function lengthText(end: string): string {
  // No test can tell: the verdict would be the same, after a packed list of two gigabytes that are not there.
  return `length = bytes[at++];
if (length > 127) { ${slow("length", "readUnsigned")} }
if (length > ${end} - at) throw unsure;
`;
}

type TaggedText = [tag: number, statements: string];

/** The text that reads one field. */
class FieldText {
  readonly #field: DescField;
  readonly #names: ReaderNames;
  /** The property of the message where the field is, or the oneof that it belongs to. */
  readonly #property: string;

  constructor(field: DescField, names: ReaderNames) {
    this.#field = field;
    this.#names = names;
    this.#property = `message[${literal((field.oneof ?? field).localName)}]`;
  }

  /** Statements by the tags for which they are run. */
  cases(): TaggedText[] {
    const field = this.#field;
    switch (field.fieldKind) {
      case "map":
        return [this.#case(WireType.LengthDelimited, this.#entry(field))];
      case "list":
        return this.#listCases(field);
      case "message":
        return [this.#case(messageWireType(field), this.#message(field, this.#before()) + this.#set())];
      default:
        return [this.#case(wireTypeOf(scalarOf(field)), this.#value(field, "end") + this.#set())];
    }
  }

  #listCases(field: DescField & { fieldKind: "list" }): TaggedText[] {
    const push = `${this.#property}.push(value);`;
    if (field.listKind === "message")
      return [this.#case(messageWireType(field), this.#message(field, "undefined") + push)];
    const wireType = wireTypeOf(scalarOf(field));
    const one = this.#case(wireType, this.#value(field, "end") + push);
    if (wireType === WireType.LengthDelimited) return [one];
    // Packed or not, whatever was declared: parsers accept both.
    const packed = `${lengthText("end")}stop = at + length;
entry = ${this.#property};
while (at < stop) { ${this.#value(field, "stop")}entry.push(value); }
if (at !== stop) throw unsure;`;
    return [one, this.#case(WireType.LengthDelimited, packed)];
  }

  #case(wireType: WireType, statements: string): TaggedText {
    return [((this.#field.number << 3) | wireType) >>> 0, `${statements}\ncontinue;`];
  }

  /** What the field has so far. */
  #before(): string {
    const { oneof, localName } = this.#field;
    if (oneof !== undefined)
      return `(${this.#property}.case === ${literal(localName)} ? ${this.#property}.value : undefined)`;
    // Otherwise a method of all objects would be read into.
    return isInherited(localName)
      ? `(hasOwn(message, ${literal(localName)}) ? ${this.#property} : undefined)`
      : this.#property;
  }

  #set(): string {
    const { oneof, localName } = this.#field;
    const value = oneof === undefined ? "value" : `{ case: ${literal(localName)}, value }`;
    return `${this.#property} = ${value};`;
  }

  /** Statements that read a scalar or an enum into `value`. */
  #value(field: DescField, end: string): string {
    if (field.enum !== undefined) {
      const read = scalarText(ScalarType.INT32, end);
      if (field.enum.open) return read;
      // protobuf-es keeps other numbers of a closed enum as unknown fields, or not.
      const numbers = this.#names.name(new Set(field.enum.values.map(({ number }) => number)));
      return `${read}if (!${numbers}.has(value)) throw unsure;\n`;
    }
    const isText = "longAsString" in field && field.longAsString;
    return scalarText(scalarOf(field), end) + (isText ? "value = String(value);\n" : "");
  }

  /** Statements that read a message into `value`, on top of what `before` is. */
  #message(field: MessageField, before: string): string {
    const { message: desc, number } = field;
    const reader = this.#names.reader(desc);
    if (isKeptAsJson(field)) return this.#alone(field, before);
    const [end, endTag] =
      messageWireType(field) === WireType.StartGroup
        ? ["end", literal(((number << 3) | WireType.EndGroup) >>> 0)]
        : ["at + length", "-1"];
    const length = endTag === "-1" ? lengthText(field.fieldKind === "map" ? "stop" : "end") : "";
    const read = `source.at = at; ${reader}.read(source, child, ${end}, ${endTag}); at = source.at;\n`;
    if (!isWrapped(field))
      return `${length}child = ${before}; if (child === undefined) child = new ${reader}.Message();\n${read}value = child;\n`;
    const inner = `child[${literal(desc.fields[0]?.localName ?? "")}]`;
    return `${length}child = new ${reader}.Message(); value = ${before}; if (value !== undefined) ${inner} = value;
${read}value = ${inner};\n`;
  }

  /** Statements by which protobuf-es reads nothing but this field, into another message of the same type. */
  #alone(field: MessageField, before: string): string {
    const parent = this.#names.name(field.parent);
    const isGroup = messageWireType(field) === WireType.StartGroup;
    const property = this.#property.replace("message", "child");
    const inner = field.fieldKind === "list" ? `${property}[0]` : property;
    return `if (${before} !== undefined || ${String(isGroup)}) throw unsure;
${lengthText("end")}at += length;
child = readAlone(${parent}, source, start, at);
value = ${field.oneof === undefined ? inner : `${property}.value`};\n`;
  }

  /** Statements that read an entry of a map: a message of key = 1 and value = 2 (protobuf.dev, "Maps"). */
  #entry(field: DescField & { fieldKind: "map" }): string {
    if (isKeptAsJson(field)) return "throw unsure;";
    const keyTag = literal((1 << 3) | wireTypeOf(field.mapKey));
    const isMessage = field.mapKind === "message";
    const valueTag = literal((2 << 3) | (isMessage ? WireType.LengthDelimited : wireTypeOf(scalarOf(field))));
    const value = isMessage ? this.#message(field, "entry") : this.#value(field, "stop");
    return `${lengthText("end")}stop = at + length; key = undefined; entry = undefined;
while (at < stop) {
tag = bytes[at++];
if (tag === ${keyTag}) { ${scalarText(field.mapKey, "stop")}key = value; }
else if (tag === ${valueTag}) { ${value}entry = value; }
else throw unsure;
}
if (at !== stop || key === "__proto__") throw unsure;
${this.#property}[key === undefined ? ${zeroText(field.mapKey)} : key] = entry === undefined ? ${this.#zero(field)} : entry;`;
  }

  #zero(field: DescField & { fieldKind: "map" }): string {
    if (field.mapKind === "message") return `new ${this.#names.reader(field.message)}.Message()`;
    if (field.mapKind === "enum") return literal(field.enum.values[0]?.number ?? 0);
    return zeroText(field.scalar);
  }
}

function zeroText(scalar: ScalarType): string {
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
function scalarText(scalar: ScalarType, end: string): string {
  switch (scalar) {
    case ScalarType.STRING:
      return `${lengthText(end)}value = readText(bytes, at, length); at += length;\n`;
    case ScalarType.BYTES:
      return `${lengthText(end)}value = bytes.subarray(at, at + length); at += length;\n`;
    case ScalarType.BOOL:
      return varintText("readBool", "value = value !== 0;");
    case ScalarType.UINT32:
      return `${varintText("readVarint32")}value >>>= 0;\n`;
    case ScalarType.SINT32:
      return `${varintText("readVarint32")}value = (value >>> 1) ^ -(value & 1);\n`;
    case ScalarType.INT64:
      return varintText("readInt64", "value = smallIntegers[value];");
    case ScalarType.UINT64:
      return varintText("readUint64", "value = smallIntegers[value];");
    case ScalarType.SINT64:
      return `at++; ${slow("value", "readSint64")}\n`;
    case ScalarType.FIXED32:
      return fixedText("getUint32", 4);
    case ScalarType.SFIXED32:
      return fixedText("getInt32", 4);
    case ScalarType.FLOAT:
      return fixedText("getFloat32", 4);
    case ScalarType.FIXED64:
      return fixedText("getBigUint64", 8);
    case ScalarType.SFIXED64:
      return fixedText("getBigInt64", 8);
    case ScalarType.DOUBLE:
      return fixedText("getFloat64", 8);
    default:
      return varintText("readVarint32");
  }
}

function varintText(read: string, ofOneByte = ""): string {
  return `value = bytes[at++];\nif (value > 127) { ${slow("value", read)} } else { ${ofOneByte} }\n`;
}

function fixedText(read: string, length: number): string {
  return `value = source.view.${read}(at, true); at += ${String(length)};\n`;
}
