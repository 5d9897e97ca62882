import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { isInherited, literal, makeFunction, mayMakeCode, TypeScope } from "../codegen/index.ts";
import { asFieldValues } from "./field-values.ts";
import { listToJson, mapToJson, refuseType } from "./json-elements.ts";
import { fieldForm, refuseMessage } from "./json-forms.ts";
import { addExtensions, composeForm, isEmpty, orderedFields, refuseUnset, zeroOf } from "./message-forms.ts";
import { jsonNameOf } from "./names.ts";
import type { MessageForms, ToJson } from "./write-context.ts";

/**
 * Makes the form of a type of code that is made for it: what `composeForm` makes, three times as fast. Members that are
 * left out are `undefined`, and left out by `JSON.stringify`: so all messages of a type become objects of one shape.
 */
export function makeForm(desc: DescMessage, forms: MessageForms): ToJson["toJson"] {
  const names = desc.fields.map((field) => jsonNameOf(field, forms.style));
  // No object has two members of one name, or one that is its prototype.
  const isOdd = new Set(names).size < names.length || names.includes("__proto__");
  if (isOdd || !mayMakeCode(forms.style)) return composeForm(desc, forms);
  const own = new TypeScope(scope);
  const members = orderedFields(desc).map((field) => {
    const value = fieldText(field, forms, (named) => own.name(named));
    return `${literal(jsonNameOf(field, forms.style))}: ${value}`;
  });
  const json = `{\n${members.join(",\n")}\n}`;
  const hasExtensions = forms.style.registry !== undefined;
  const text = `function (message) {
  if (message?.$typeName !== ${literal(desc.typeName)}) refuseMessage(${literal(desc.typeName)});
  let value;
  return ${hasExtensions ? `addExtensions(${json}, ${own.name(desc)}, message, ${own.name(forms.style)})` : json};
}`;
  return makeFunction(text, own.values);
}

const scope = {
  addExtensions,
  hasOwn: Object.hasOwn,
  isEmpty,
  listToJson,
  mapToJson,
  oneof: asFieldValues,
  refuseMessage,
  refuseType,
  refuseUnset,
};

/** Returns the expression that makes the value of one field, or `undefined` where it is left out. It uses `value`. */
function fieldText(field: DescField, forms: MessageForms, name: (value: unknown) => string): string {
  const { fieldKind, localName, oneof } = field;
  const property = `message[${literal((oneof ?? field).localName)}]`;
  const form = fieldForm(field, forms);
  const always = forms.style.alwaysEmitImplicit === true;
  if (fieldKind === "list" || fieldKind === "map") {
    const whenEmpty = fieldKind === "list" ? "[]" : "{}";
    return `${fieldKind}ToJson(${property}, ${name(form)}, ${always ? whenEmpty : "undefined"})`;
  }
  const valueText =
    typeof form === "string"
      ? `typeof value === ${literal(form)} ? value : refuseType(${literal(`a ${form}`)}, value)`
      : `${name(form)}.toJson(value)`;
  if (oneof !== undefined)
    return `(value = oneof(${property})).case !== ${literal(localName)} ? undefined : (value = value.value, ${valueText})`;
  return `(value = ${property}, ${unsetText(field, always, name)}) ? ${whenUnset(field, name)} : ${valueText}`;
}

/** Returns the expression that tells whether `value` is left out. */
function unsetText(field: DescField, always: boolean, name: (value: unknown) => string): string {
  const { presence, scalar, message, localName } = field;
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) {
    // Defaults of proto2 are on the prototype. A message has none.
    const mayInherit = message === undefined || isInherited(localName);
    return `value === undefined${mayInherit ? ` || !hasOwn(message, ${literal(localName)})` : ""}`;
  }
  if (always) return "false";
  // -0 is a value, but equal to 0.
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return "Object.is(value, 0)";
  return scalar === ScalarType.BYTES ? "isEmpty(value)" : `value === ${name(zeroOf(field))}`;
}

function whenUnset(field: DescField, name: (value: unknown) => string): string {
  return field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ? `refuseUnset(${name(field)})` : "undefined";
}
