import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { literal, makeFunction, messageClass, oncePer, switchText, TypeScope, unsure } from "../codegen/index.ts";
import { takesNull } from "./field-reader.ts";
import { localFormOf, setOwn } from "./field-values.ts";
import { fieldsByName } from "./names.ts";
import { createValueReader, createWellKnownReader, type PlainReader } from "./plain-values.ts";
import { isMapKey } from "./text-forms.ts";

/** The quick readers for one spelling of values: code that is made when the first text of a type is read. */
export interface MadeReaders {
  /** Whether integers must be in canonical form. */
  readonly canonical: boolean;
  /** Returns the reader of a message type, for its own JSON form if it has one. */
  of(desc: DescMessage): PlainReader;
  /** Returns the reader of all values of a field. */
  ofField(field: DescField): PlainReader;
}

/** Creates the quick readers for one spelling of values. */
export function createMadeReaders(canonical: boolean): MadeReaders {
  const readers: MadeReaders = {
    canonical,
    of: oncePer(
      (desc) => createWellKnownReader(desc, canonical) ?? lazyReader((own) => messageText(desc, own, readers)),
    ),
    ofField: oncePer((field) => lazyReader((own) => fieldText(field, own, readers))),
  };
  return readers;
}

function lazyReader(textOf: (own: TypeScope) => string): PlainReader {
  const reader: PlainReader = {
    read(json, state) {
      const own = new TypeScope(scope);
      reader.read = makeFunction(textOf(own), own.values);
      return reader.read(json, state);
    },
  };
  return reader;
}

const scope = { hasOwn: Object.hasOwn, isArray: Array.isArray, isFinite: Number.isFinite, isMapKey, setOwn, unsure };

/**
 * Returns the text of a function `(json, state)`, which returns the message of an object that `JSON.parse` has returned.
 *
 * It counts the strings that it comes across, names included. A list or a map is the object's own where a message has
 * its values as JSON has them.
 */
function messageText(desc: DescMessage, own: TypeScope, readers: MadeReaders): string {
  const cases = [...fieldsByName(desc)].map(([name, field]): [string, string] => {
    const { jsonName, localName, oneof } = field;
    // The other name sets the field again.
    const check = name === jsonName ? "" : `if (hasOwn(json, ${literal(jsonName)})) throw unsure;\n`;
    const skipNull = takesNull(field) && !isRepeated(field) ? "" : "if (value === null) continue;\n";
    const place = `message[${literal((oneof ?? field).localName)}]`;
    const store =
      oneof === undefined
        ? `${place} = value;`
        : `if (${place}.case !== undefined) throw unsure;\n${place} = { case: ${literal(localName)}, value };`;
    return [name, `${check}${skipNull}${valueText(field, own, readers)}${store}\ncontinue;`];
  });
  return `function (json, state) {
  if (typeof json !== "object" || json === null || isArray(json)) throw unsure;
  const message = new ${own.name(messageClass(desc))}();
  let strings = 0, value;
  for (const name in json) {
    strings++;
    value = json[name];
    ${switchText("name", new Map(cases), "throw unsure;", (of) => own.name(of))}
  }
  state.strings += strings;
  return message;
}`;
}

/** Returns the text of a function `(value, state)`, which returns the value of one field. */
function fieldText(field: DescField, own: TypeScope, readers: MadeReaders): string {
  return `function (value, state) {
  let strings = 0;
${valueText(field, own, readers)}
  state.strings += strings;
  return value;
}`;
}

function isRepeated({ fieldKind }: DescField): boolean {
  return fieldKind === "list" || fieldKind === "map";
}

/** Returns statements that replace `value`, what JSON has for a field, by what a message has. */
function valueText(field: DescField, own: TypeScope, readers: MadeReaders): string {
  if (field.fieldKind === "list") return listText(field, own, readers);
  return field.fieldKind === "map" ? mapText(field, own, readers) : elementText(field, own, readers);
}

function listText(field: DescField, own: TypeScope, readers: MadeReaders): string {
  const [begin, add] = isKept(field) ? ["list", ""] : ["[]", "items.push(value);\n"];
  return `if (!isArray(value)) throw unsure;
{ const list = value, items = ${begin};
for (let index = 0; index < list.length; index++) {
value = list[index];
${refuseNull(field)}${elementText(field, own, readers)}${add}}
value = items; }
`;
}

function mapText(field: DescField & { readonly fieldKind: "map" }, own: TypeScope, readers: MadeReaders): string {
  const isAnyKey = field.mapKey === ScalarType.STRING;
  const [begin, add] = isKept(field) ? ["entries", ""] : ["{}", "setOwn(object, key, value);\n"];
  return `if (typeof value !== "object" || isArray(value)) throw unsure;
{ const entries = value, object = ${begin};
for (const key in entries) {
strings++;
${isAnyKey ? "" : `if (!isMapKey(key, ${literal(field.mapKey)})) throw unsure;\n`}value = entries[key];
${refuseNull(field)}${elementText(field, own, readers)}${add}}
value = object; }
`;
}

// Whether the values of a list or a map are those of JSON.
function isKept({ scalar }: DescField): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BOOL;
}

function refuseNull(field: DescField): string {
  return takesNull(field) ? "" : "if (value === null) throw unsure;\n";
}

/** Returns statements that replace `value`, what JSON has for an element, by what a message has. */
function elementText(field: DescField, own: TypeScope, readers: MadeReaders): string {
  const { message } = field;
  if (message !== undefined && localFormOf({ ...field, message }) === "message")
    return `value = ${own.name(readers.of(message))}.read(value, state);\n`;
  const read = `value = ${own.name(createValueReader(field, readers.canonical))}.read(value, state);\n`;
  switch (message !== undefined && isWrapperDesc(message) ? message.fields[0].scalar : field.scalar) {
    case ScalarType.STRING:
      return `if (typeof value !== "string" || (state.mayBeLone && !value.isWellFormed())) throw unsure;\nstrings++;\n`;
    case ScalarType.BOOL:
      return 'if (typeof value !== "boolean") throw unsure;\n';
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      // An object may have no primitive value, and 0 may be -0.
      return `if (typeof value !== "number" || (value | 0) !== value || value === 0) ${read}`;
    case ScalarType.DOUBLE:
      return `if (!isFinite(value)) ${read}`;
    default:
      return read;
  }
}
