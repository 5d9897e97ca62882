import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { literal, switchText } from "../made-code/index.ts";
import { takesNull } from "./field-reader.ts";
import { localFormOf } from "./field-values.ts";
import { fieldsByName } from "./names.ts";

/** Names for what the text of a reader refers to. */
export interface ReaderNames {
  name(value: unknown): string;
  /** Returns the name of the constructor of messages of a type. */
  constructorOf(desc: DescMessage): string;
  /** Returns the name of the reader of a type, which has `read`. */
  readerOf(desc: DescMessage): string;
  /** Returns the name of the reader of a value without fields, or of what is stored as one, which has `read`. */
  valueReaderOf(field: DescField): string;
}

/**
 * Returns the text of a function `(json, state)`, which returns the message of an object that `JSON.parse` has returned.
 *
 * It counts the strings that it comes across, names included. A list or a map is the object's own where a message has
 * its values as JSON has them.
 */
export function messageText(desc: DescMessage, names: ReaderNames): string {
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
    return [name, `${check}${skipNull}${valueText(field, names)}${store}\ncontinue;`];
  });
  return `function (json, state) {
  if (typeof json !== "object" || json === null || isArray(json)) throw unsure;
  const message = new ${names.constructorOf(desc)}();
  let strings = 0, value;
  for (const name in json) {
    strings++;
    value = json[name];
    ${switchText("name", new Map(cases), "throw unsure;", (of) => names.name(of))}
  }
  state.strings += strings;
  return message;
}`;
}

/** Returns the text of a function `(value, state)`, which returns the value of one field. */
export function fieldText(field: DescField, names: ReaderNames): string {
  return `function (value, state) {
  let strings = 0;
${valueText(field, names)}
  state.strings += strings;
  return value;
}`;
}

function isRepeated({ fieldKind }: DescField): boolean {
  return fieldKind === "list" || fieldKind === "map";
}

/** Returns statements that replace `value`, what JSON has for a field, by what a message has. */
function valueText(field: DescField, names: ReaderNames): string {
  if (field.fieldKind === "list") return listText(field, names);
  return field.fieldKind === "map" ? mapText(field, names) : elementText(field, names);
}

function listText(field: DescField, names: ReaderNames): string {
  const [begin, add] = isKept(field) ? ["list", ""] : ["[]", "items.push(value);\n"];
  return `if (!isArray(value)) throw unsure;
{ const list = value, items = ${begin};
for (let index = 0; index < list.length; index++) {
value = list[index];
${refuseNull(field)}${elementText(field, names)}${add}}
value = items; }
`;
}

function mapText(field: DescField & { readonly fieldKind: "map" }, names: ReaderNames): string {
  const isAnyKey = field.mapKey === ScalarType.STRING;
  const [begin, add] = isKept(field) ? ["entries", ""] : ["{}", "setOwn(object, key, value);\n"];
  return `if (typeof value !== "object" || isArray(value)) throw unsure;
{ const entries = value, object = ${begin};
for (const key in entries) {
strings++;
${isAnyKey ? "" : `if (!isMapKey(key, ${literal(field.mapKey)})) throw unsure;\n`}value = entries[key];
${refuseNull(field)}${elementText(field, names)}${add}}
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
function elementText(field: DescField, names: ReaderNames): string {
  const { message } = field;
  if (message !== undefined && localFormOf({ ...field, message }) === "message")
    return `value = ${names.readerOf(message)}.read(value, state);\n`;
  const read = `value = ${names.valueReaderOf(field)}.read(value, state);\n`;
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
