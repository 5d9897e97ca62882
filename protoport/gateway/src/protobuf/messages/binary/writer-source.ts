import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { isKeptAsJson, isWrapped, type MessageField, messageWireType, scalarOf, wireTypeOf } from "./wire-types.ts";
import { literal } from "../codegen.ts";

/** Assigns names to the values that a writer's generated source uses. */
interface WriterNames {
  name(value: unknown): string;
  /** Returns the name for a message type's writer. */
  writer(desc: DescMessage): string;
}

/**
 * Generates the function `(target, message)` that writes a message as protobuf-es does: fields by number, then unknown
 * fields. In the generated source, `at` is the offset at which the next write starts. Before the content, space is
 * reserved for a length of the previous size. The content is moved if the length has another size.
 */
export function generateWriter(desc: DescMessage, names: WriterNames): string {
  const fields = desc.fields
    .toSorted((a, b) => a.number - b.number)
    .map((field) => new FieldWriterSource(field, names));
  return `(() => {
${fields.map(({ sizeEstimate }) => `let ${sizeEstimate} = 1;`).join("\n")}
return function (target, message) {
  if (message.$typeName !== ${literal(desc.typeName)}) throw bailOut;
  const bytes = target.bytes;
  let at = target.at, value, child, start = 0;
${fields.map((field) => field.statements()).join("\n")}
  target.at = at;
  if (message.$unknown !== undefined) writeUnknown(target, message.$unknown);
};
})()`;
}

class FieldWriterSource {
  /** The name of the variable that stores how many bytes the field's last length prefix had. */
  readonly sizeEstimate: string;
  readonly #field: DescField;
  readonly #names: WriterNames;
  readonly #property: string;

  constructor(field: DescField, names: WriterNames) {
    this.#field = field;
    this.#names = names;
    this.#property = `message[${literal((field.oneof ?? field).localName)}]`;
    this.sizeEstimate = `guess${String(field.number)}`;
  }

  statements(): string {
    const field = this.#field;
    const get = `value = ${this.#property};\n`;
    switch (field.fieldKind) {
      case "list":
        return get + this.#list(field);
      case "map":
        return get + this.#map(field);
      default:
        if (field.oneof === undefined)
          return `${get}if (${this.#isSet()}) { ${this.#singular()} }${this.#fallbackSource()}`;
        return `${get}if (value.case === ${literal(field.localName)}) { value = value.value; ${this.#singular()} }`;
    }
  }

  #tag(wireType: WireType): string {
    return tagSource(this.#field.number, wireType);
  }

  /** Returns the condition for writing `value`. Fields without presence are written if they are not zero. */
  #isSet(): string {
    const { presence, localName } = this.#field;
    // Proto2 defaults are on the prototype, so only an own property is a set field.
    if (presence !== FeatureSet_FieldPresence.IMPLICIT)
      return `value !== undefined && hasOwn(message, ${literal(localName)})`;
    // An enum without presence is open, and its first value is 0.
    if (this.#field.enum !== undefined) return "value !== 0";
    switch (scalarOf(this.#field)) {
      case ScalarType.BOOL:
        return "value !== false";
      case ScalarType.STRING:
        return 'value !== ""';
      case ScalarType.BYTES:
        return "value.byteLength !== 0";
      case ScalarType.DOUBLE:
      case ScalarType.FLOAT:
        // -0 is written, because -0 is not the default value.
        return "!Object.is(value, 0)";
      default:
        // The source uses loose equality, because the value may also be "0" or 0n.
        return "value != 0";
    }
  }

  #fallbackSource(): string {
    return this.#field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ? " else throw bailOut;" : "";
  }

  #singular(): string {
    const field = this.#field;
    if (field.fieldKind === "message") return this.#message(field, "value");
    const scalar = scalarOf(field);
    return this.#tag(wireTypeOf(scalar)) + valueSource(scalar, "value");
  }

  #list(field: DescField & { fieldKind: "list" }): string {
    if (field.listKind === "message") {
      if (isKeptAsJson(field)) return `if (value.length !== 0) { ${this.#withProtobufEs(field)} }`;
      return forEachSource(this.#message(field, "value[index]"));
    }
    const scalar = scalarOf(field);
    const elementSource = valueSource(scalar, "value[index]");
    if (!field.packed) return forEachSource(this.#tag(wireTypeOf(scalar)) + elementSource);
    return `if (value.length !== 0) { ${this.#tag(WireType.LengthDelimited)}${this.#lengthDelimited(forEachSource(elementSource))} }`;
  }

  #map(field: DescField & { fieldKind: "map" }): string {
    const entry = this.#key(field.mapKey) + this.#entryValue(field);
    return `for (const key of Object.keys(value)) {
${this.#tag(WireType.LengthDelimited)}const entryStart = at; at += ${this.sizeEstimate}; const reserved = ${this.sizeEstimate};
${entry}
target.at = at; ${this.sizeEstimate} = writeLengthBefore(target, entryStart, reserved); at = target.at;
}`;
  }

  #key(mapKey: ScalarType): string {
    const tag = tagSource(1, wireTypeOf(mapKey));
    if (mapKey === ScalarType.BOOL) return `${tag}${call("writeBoolKey", "key")}`;
    const isString = mapKey === ScalarType.STRING || isLong(mapKey);
    // The writer bails out for a key that is not a canonical integer, because the conversion changes the key.
    return (
      tag +
      (isString
        ? valueSource(mapKey, "key")
        : `child = Number(key); if (String(child) !== key) throw bailOut;\n${valueSource(mapKey, "child")}`)
    );
  }

  #entryValue(field: DescField & { fieldKind: "map" }): string {
    if (field.mapKind !== "message") {
      const scalar = scalarOf(field);
      return tagSource(2, wireTypeOf(scalar)) + valueSource(scalar, "value[key]");
    }
    if (isKeptAsJson(field)) return "throw bailOut;";
    const write = `target.at = at; ${this.#names.writer(field.message)}.write(target, value[key]); at = target.at;\n`;
    return `${tagSource(2, WireType.LengthDelimited)}start = at; at += 1;\n${write}target.at = at; writeLengthBefore(target, start, 1); at = target.at;\n`;
  }

  #message(field: MessageField, value: string): string {
    if (isKeptAsJson(field)) return this.#withProtobufEs(field);
    const writer = this.#names.writer(field.message);
    const wrap = `child = new ${writer}.Message(); child[${literal(field.message.fields[0]?.localName ?? "")}] = value;\n`;
    const [before, inner] = isWrapped(field) ? [wrap, "child"] : ["", value];
    const write = `target.at = at; ${writer}.write(target, ${inner}); at = target.at;\n`;
    const wireType = messageWireType(field);
    if (wireType === WireType.StartGroup)
      return before + this.#tag(WireType.StartGroup) + write + this.#tag(WireType.EndGroup);
    return before + this.#tag(wireType) + this.#lengthDelimited(write);
  }

  /** Returns statements that write length-delimited content. */
  #lengthDelimited(statements: string): string {
    return `{ const lengthStart = at, reserved = ${this.sizeEstimate}; at += reserved;
${statements}
target.at = at; ${this.sizeEstimate} = writeLengthBefore(target, lengthStart, reserved); at = target.at; }\n`;
  }

  /** Returns statements that write this field with protobuf-es. */
  #withProtobufEs(field: MessageField): string {
    const parent = this.#names.name(field.parent);
    return `target.at = at; writeFieldWithProtobufEs(target, ${parent}, ${literal((field.oneof ?? field).localName)}, ${this.#property}); at = target.at;\n`;
  }
}

function forEachSource(statements: string): string {
  return `for (let index = 0; index < value.length; index += 1) { ${statements} }`;
}

function tagSource(number: number, wireType: WireType): string {
  const bytes: number[] = [];
  let remainder = ((number << 3) | wireType) >>> 0;
  for (; remainder > 0x7f; remainder >>>= 7) bytes.push((remainder & 0x7f) | 0x80);
  bytes.push(remainder);
  return bytes.map((byte) => `bytes[at++] = ${literal(byte)}; `).join("");
}

function call(write: string, value: string): string {
  return `target.at = at; ${write}(target, ${value}); at = target.at;\n`;
}

/** Returns statements that write an integer from 0 to 127 inline, and any other value by a function call. */
function varintSource(write: string, value: string): string {
  return `if ((${value} & 127) === ${value}) bytes[at++] = ${value}; else { ${call(write, value)} }\n`;
}

function isLong(scalar: ScalarType): boolean {
  return [ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64].includes(
    scalar,
  );
}

function valueSource(scalar: ScalarType, value: string): string {
  switch (scalar) {
    case ScalarType.INT32:
      return varintSource("writeInt32", value);
    case ScalarType.UINT32:
      return varintSource("writeUint32", value);
    default:
      return call(writerNames[scalar], value);
  }
}

const writerNames: Readonly<Record<ScalarType, string>> = {
  [ScalarType.STRING]: "writeString",
  [ScalarType.BYTES]: "writeBytes",
  [ScalarType.BOOL]: "writeBool",
  [ScalarType.INT32]: "writeInt32",
  [ScalarType.UINT32]: "writeUint32",
  [ScalarType.SINT32]: "writeSint32",
  [ScalarType.INT64]: "writeInt64",
  [ScalarType.UINT64]: "writeUint64",
  [ScalarType.SINT64]: "writeSint64",
  [ScalarType.FIXED32]: "writeFixed32",
  [ScalarType.SFIXED32]: "writeSfixed32",
  [ScalarType.FIXED64]: "writeFixed64",
  [ScalarType.SFIXED64]: "writeSfixed64",
  [ScalarType.FLOAT]: "writeFloat",
  [ScalarType.DOUBLE]: "writeDouble",
};
