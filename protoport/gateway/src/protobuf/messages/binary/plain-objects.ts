import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { Edition, FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { bailOut, canCompile, compileFunction, literal, memoize, messageClass, TypeScope } from "../codegen.ts";

/** Converts an object to a message, or returns `undefined` if the result is not certain. */
export type PlainConverter = (value: unknown) => Message | undefined;

/**
 * Creates a function that converts objects as ts-proto creates them with `forceLong=bigint,useDate=false`. The message is
 * the one that writing the object in binary and reading the bytes would return. The function returns `undefined` for a
 * value of an unexpected type, such as a number in a string field.
 *
 * @returns `undefined` for types with Struct, map keys that are not strings, or wrappers in lists, maps or oneofs, for
 * recursive types, files in proto2 or editions, and if code must not be generated
 */
export function createPlainConverter(desc: DescMessage): PlainConverter | undefined {
  if (!canCompile(undefined) || !isSupported(desc, [])) return undefined;
  const convert = converterOf(desc);
  return (value) => {
    try {
      return convert.read(value);
    } catch {
      return undefined;
    }
  };
}

/** Converts the values of one type. `read` throws for a value of an unexpected type. */
interface Converter {
  read(value: unknown): Message;
}

const converterOf = memoize((desc: DescMessage): Converter => {
  const own = new TypeScope({
    bailOut,
    isArray: Array.isArray,
    BigInt,
    Bytes: Uint8Array,
    is: Object.is,
    fround: Math.fround,
  });
  return { read: compileFunction(messageSource(desc, own), own.values) };
});

function isSupported(desc: DescMessage, parents: readonly DescMessage[]): boolean {
  const { typeName, file, fields } = desc;
  if (parents.includes(desc) || file.edition !== Edition.EDITION_PROTO3) return false;
  if (isWrapperDesc(desc) || typeName === "google.protobuf.Struct" || typeName === "google.protobuf.ListValue")
    return false;
  return fields.every((field) => {
    if (field.localName in Object.prototype) return false;
    if (field.fieldKind === "map" && field.mapKey !== ScalarType.STRING) return false;
    if (field.fieldKind !== "map" && "longAsString" in field && field.longAsString) return false;
    return field.message === undefined || isUnboxed(field) || isSupported(field.message, [...parents, desc]);
  });
}

/** Returns whether protobuf-es stores a wrapper's value in the field instead of the wrapper, as ts-proto always does. */
function isUnboxed({ fieldKind, message, oneof }: DescField): boolean {
  return fieldKind === "message" && oneof === undefined && isWrapperDesc(message);
}

function messageSource(desc: DescMessage, own: TypeScope): string {
  const fields = desc.fields.map((field) => {
    const name = literal(field.localName);
    const check = plainValueSource(field, own);
    const read = `value = object[${name}];\n`;
    if (field.fieldKind === "list")
      return `${read}if (!isArray(value)) throw bailOut;\n{ const list = value, items = message[${name}];
for (let index = 0; index < list.length; index++) { value = list[index];\n${check}items.push(value); } }\n`;
    if (field.fieldKind === "map")
      return `${read}if (typeof value !== "object" || value === null || isArray(value) || value instanceof Map) throw bailOut;
{ const entries = value, items = message[${name}];
for (const key of Object.keys(entries)) { if (key === "__proto__" || !key.isWellFormed()) throw bailOut;\nvalue = entries[key];\n${check}items[key] = value; } }\n`;
    if (field.oneof !== undefined) {
      // With two members, the last one in binary counts.
      const oneof = `message[${literal(field.oneof.localName)}]`;
      return `${read}if (value !== undefined) {
${requireThat(`${oneof}.case === undefined`)}${check}${oneof} = { case: ${name}, value };\n}\n`;
    }
    const store = `message[${name}] = value;\n`;
    return field.presence === FeatureSet_FieldPresence.IMPLICIT
      ? `${read}${check}${store}`
      : `${read}if (value !== undefined) {\n${check}${store}}\n`;
  });
  return `function (object) {
  if (typeof object !== "object" || object === null) throw bailOut;
  const message = new ${own.name(messageClass(desc))}();
  let value;
  ${fields.join("")}  return message;
}`;
}

/** Returns a statement that throws unless a condition is met. */
function requireThat(condition: string): string {
  return `if (!(${condition})) throw bailOut;\n`;
}

/** Returns statements that check and convert `value`. */
function plainValueSource(field: DescField, own: TypeScope): string {
  const { message, enum: enumeration, scalar } = (isUnboxed(field) && field.message?.fields[0]) || field;
  if (message !== undefined) return `value = ${own.name(converterOf(message))}.read(value);\n`;
  if (enumeration !== undefined) return requireThat("(value | 0) === value && !is(value, -0)");
  switch (scalar) {
    case ScalarType.STRING:
      return requireThat('typeof value === "string" && value.isWellFormed()');
    case ScalarType.BOOL:
      return requireThat('typeof value === "boolean"');
    case ScalarType.BYTES:
      return `${requireThat("value instanceof Bytes")}value = new Bytes(value);\n`;
    case ScalarType.DOUBLE:
      return requireThat('typeof value === "number" && !is(value, -0)');
    case ScalarType.FLOAT:
      return `${requireThat('typeof value === "number"')}value = fround(value);\n${requireThat("!is(value, -0)")}`;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return requireThat('typeof value === "number" && (value >>> 0) === value && !is(value, -0)');
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return requireThat('typeof value === "bigint" && BigInt.asIntN(64, value) === value');
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return requireThat('typeof value === "bigint" && BigInt.asUintN(64, value) === value');
    default:
      return requireThat('typeof value === "number" && (value | 0) === value && !is(value, -0)');
  }
}
