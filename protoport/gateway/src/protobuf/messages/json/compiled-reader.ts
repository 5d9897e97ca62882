import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { bailOut, compileFunction, literal, memoize, messageClass, switchSource, TypeScope } from "../codegen.ts";
import { acceptsNull } from "./field-reader.ts";
import { localFormOf, setOwn } from "./field-values.ts";
import { fieldsByName } from "./names.ts";
import { createPlainValueReader, createPlainWellKnownReader, type PlainReader } from "./plain-values.ts";
import { isMapKey } from "./text-forms.ts";

/** The generated readers for one setting of `canonical`. A reader is compiled when its type is first read. */
export interface CompiledReaders {
  /** Whether integers must be in canonical form. */
  readonly canonical: boolean;
  /** Returns a message type's reader. If the type has its own JSON form, the reader reads that form. */
  readerOf(desc: DescMessage): PlainReader;
  readerOfField(field: DescField): PlainReader;
}

/** Creates the generated readers. */
/* @__NO_SIDE_EFFECTS__ */
export function createCompiledReaders(canonical: boolean): CompiledReaders {
  const readers: CompiledReaders = {
    canonical,
    readerOf: memoize(
      (desc) =>
        createPlainWellKnownReader(desc, canonical) ?? lazyReader((own) => messageReaderSource(desc, own, readers)),
    ),
    readerOfField: memoize((field) => lazyReader((own) => fieldSource(field, own, readers))),
  };
  return readers;
}

function lazyReader(sourceOf: (own: TypeScope) => string): PlainReader {
  const reader: PlainReader = {
    read(json, state) {
      const typeScope = new TypeScope(scope);
      reader.read = compileFunction(sourceOf(typeScope), typeScope.values);
      return reader.read(json, state);
    },
  };
  return reader;
}

const scope = { hasOwn: Object.hasOwn, isArray: Array.isArray, isFinite: Number.isFinite, isMapKey, setOwn, bailOut };

/**
 * Generates the function `(json, state)` that converts an object from `JSON.parse` to a message, and counts the
 * strings, including names. A list or a map is used unchanged if its values need no conversion.
 */
function messageReaderSource(desc: DescMessage, own: TypeScope, readers: CompiledReaders): string {
  const cases = [...fieldsByName(desc)].map(([name, field]): [string, string] => {
    const { jsonName, localName, oneof } = field;
    // The field would be set twice if the object also had the field's JSON name.
    const check = name === jsonName ? "" : `if (hasOwn(json, ${literal(jsonName)})) throw bailOut;\n`;
    const skipNull = acceptsNull(field) && !isRepeated(field) ? "" : "if (value === null) continue;\n";
    const memberSource = `message[${literal((oneof ?? field).localName)}]`;
    const storeSource =
      oneof === undefined
        ? `${memberSource} = value;`
        : `if (${memberSource}.case !== undefined) throw bailOut;\n${memberSource} = { case: ${literal(localName)}, value };`;
    return [name, `${check}${skipNull}${jsonValueSource(field, own, readers)}${storeSource}\ncontinue;`];
  });
  return `function (json, state) {
  if (typeof json !== "object" || json === null || isArray(json)) throw bailOut;
  const message = new ${own.name(messageClass(desc))}();
  let strings = 0, value;
  for (const name in json) {
    strings++;
    value = json[name];
    ${switchSource("name", new Map(cases), "throw bailOut;", (of) => own.name(of))}
  }
  state.strings += strings;
  return message;
}`;
}

/** Generates the function `(value, state)` that returns one field's value. */
function fieldSource(field: DescField, own: TypeScope, readers: CompiledReaders): string {
  return `function (value, state) {
  let strings = 0;
${jsonValueSource(field, own, readers)}
  state.strings += strings;
  return value;
}`;
}

function isRepeated({ fieldKind }: DescField): boolean {
  return fieldKind === "list" || fieldKind === "map";
}

/** Returns statements that convert `value` from a field's JSON to the value that a message stores. */
function jsonValueSource(field: DescField, own: TypeScope, readers: CompiledReaders): string {
  if (field.fieldKind === "list") return listSource(field, own, readers);
  return field.fieldKind === "map" ? mapSource(field, own, readers) : elementSource(field, own, readers);
}

function listSource(field: DescField, own: TypeScope, readers: CompiledReaders): string {
  const [begin, add] = isUnchanged(field) ? ["list", ""] : ["[]", "items.push(value);\n"];
  return `if (!isArray(value)) throw bailOut;
{ const list = value, items = ${begin};
for (let index = 0; index < list.length; index++) {
value = list[index];
${refuseNull(field)}${elementSource(field, own, readers)}${add}}
value = items; }
`;
}

function mapSource(field: DescField & { readonly fieldKind: "map" }, own: TypeScope, readers: CompiledReaders): string {
  const isAnyKey = field.mapKey === ScalarType.STRING;
  const [begin, add] = isUnchanged(field) ? ["entries", ""] : ["{}", "setOwn(object, key, value);\n"];
  return `if (typeof value !== "object" || isArray(value)) throw bailOut;
{ const entries = value, object = ${begin};
for (const key in entries) {
strings++;
${isAnyKey ? "" : `if (!isMapKey(key, ${literal(field.mapKey)})) throw bailOut;\n`}value = entries[key];
${refuseNull(field)}${elementSource(field, own, readers)}${add}}
value = object; }
`;
}

// Returns whether list elements or map values need no conversion.
function isUnchanged({ scalar }: DescField): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BOOL;
}

function refuseNull(field: DescField): string {
  return acceptsNull(field) ? "" : "if (value === null) throw bailOut;\n";
}

/** Returns statements that convert `value` from an element's JSON to the value that a message stores. */
function elementSource(field: DescField, own: TypeScope, readers: CompiledReaders): string {
  const { message } = field;
  if (message !== undefined && localFormOf({ ...field, message }) === "message")
    return `value = ${own.name(readers.readerOf(message))}.read(value, state);\n`;
  const read = `value = ${own.name(createPlainValueReader(field, readers.canonical))}.read(value, state);\n`;
  switch (message !== undefined && isWrapperDesc(message) ? message.fields[0].scalar : field.scalar) {
    case ScalarType.STRING:
      return `if (typeof value !== "string" || (state.mayHaveLoneSurrogates && !value.isWellFormed())) throw bailOut;\nstrings++;\n`;
    case ScalarType.BOOL:
      return 'if (typeof value !== "boolean") throw bailOut;\n';
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      // The type is checked first, because `|` throws for an object without a primitive value. The reader
      // for the value type converts 0, because the value may be -0.
      return `if (typeof value !== "number" || (value | 0) !== value || value === 0) ${read}`;
    case ScalarType.DOUBLE:
      return `if (!isFinite(value)) ${read}`;
    default:
      return read;
  }
}
