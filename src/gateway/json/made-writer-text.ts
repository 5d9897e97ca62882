import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { literal } from "../made-code/index.ts";
import { zeroOf } from "./field-writer.ts";
import { localFormOf } from "./field-values.ts";
import { enumJsonForm, type JsonForm, plainObjectForm, scalarJsonForm } from "./json-forms.ts";
import { mayHoldMask } from "./message-writer.ts";
import type { JsonStyle } from "./write-context.ts";

/** Names for what the text of a writer refers to. */
export interface WriterNames {
  name(value: unknown): string;
  /** Returns the name of the writer of a type, which has `toJson`. */
  writer(desc: DescMessage): string;
}

/**
 * Returns the text of a function `(message)`, which returns the object that the JSON of a message is, its members in the
 * order of the text. Those of fields that are left out are `undefined`, and left out by `JSON.stringify`: so all messages
 * of a type become objects of one shape.
 *
 * A list or a map is the message's own where JSON has its values as the message has them.
 */
export function messageText(desc: DescMessage, style: JsonStyle, names: WriterNames): string {
  // What may hold a mask comes last, as the exact writer has it.
  const masked = desc.fields.filter(({ message }) => message !== undefined && mayHoldMask(message));
  const others = desc.fields.filter((field) => !masked.includes(field)).toSorted((a, b) => a.number - b.number);
  const members = [...others, ...masked].map((field) => {
    const name = style.useProtoFieldName === true ? field.name : field.jsonName;
    return `${literal(name)}: ${new FieldText(field, style, names).text()}`;
  });
  // Extensions are among what is unknown.
  const check = style.registry === undefined ? "" : "if (message.$unknown !== undefined) refuse();";
  return `function (message) {
  if (message.$typeName !== ${literal(desc.typeName)}) refuse();
  ${check}
  let value;
  return {
${members.join(",\n")}
  };
}`;
}

/** Returns the text of a function `(message)`, which returns the value of one field. */
export function fieldText(field: DescField, style: JsonStyle, names: WriterNames): string {
  return `function (message) { let value; return ${new FieldText(field, style, names).text()}; }`;
}

/** The expression that makes the value of one field, or `undefined` where it is left out. It uses the variable `value`. */
class FieldText {
  readonly #field: DescField;
  readonly #style: JsonStyle;
  readonly #names: WriterNames;

  constructor(field: DescField, style: JsonStyle, names: WriterNames) {
    this.#field = field;
    this.#style = style;
    this.#names = names;
  }

  text(): string {
    const field = this.#field;
    const { fieldKind, localName, oneof } = field;
    const property = `message[${literal((oneof ?? field).localName)}]`;
    if (fieldKind === "list") return this.#elements("list", property, "[]");
    if (fieldKind === "map") return this.#elements("map", property, "{}");
    if (oneof === undefined)
      return `(value = ${property}, ${this.#isUnset()}) ? ${this.#whenUnset()} : ${this.#value()}`;
    return `(value = oneof(${property})).case !== ${literal(localName)} ? undefined : (value = value.value, ${this.#value()})`;
  }

  #elements(kind: "list" | "map", property: string, empty: string): string {
    const form = this.#form();
    const whenEmpty = this.#style.alwaysEmitImplicit === true ? empty : "undefined";
    return typeof form === "string"
      ? `${kind}As(${property}, ${literal(form)}, ${whenEmpty})`
      : `${kind}By(${property}, ${form.name}, ${whenEmpty})`;
  }

  /** Whether `value` is left out. */
  #isUnset(): string {
    const { presence, scalar, message, localName } = this.#field;
    if (presence !== FeatureSet_FieldPresence.IMPLICIT) {
      const isPlain = message !== undefined && presence !== FeatureSet_FieldPresence.LEGACY_REQUIRED;
      // Defaults of proto2 are on the prototype.
      return `value === undefined${isPlain ? "" : ` || !hasOwn(message, ${literal(localName)})`}`;
    }
    if (this.#style.alwaysEmitImplicit === true) return "false";
    // -0 is a value, but equal to 0.
    if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return "Object.is(value, 0)";
    if (scalar === ScalarType.BYTES) return "isEmpty(value)";
    return `value === ${this.#names.name(zeroOf(this.#field))}`;
  }

  #whenUnset(): string {
    return this.#field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED ? "refuse()" : "undefined";
  }

  /** The value of JSON for `value`. */
  #value(): string {
    const form = this.#form();
    return typeof form === "string"
      ? `typeof value === ${literal(form)} ? value : refuse()`
      : `${form.name}.toJson(value)`;
  }

  /** The type of values that JSON has as a message has them, or the name of what makes others. */
  #form(): string | { readonly name: string } {
    const field = this.#field;
    const { message } = field;
    if (message === undefined) {
      return this.#named(
        field.enum === undefined ? scalarJsonForm(field.scalar, this.#style) : enumJsonForm(field.enum, this.#style),
      );
    }
    const local = localFormOf({ ...field, message });
    if (local === "json-object") return this.#named(plainObjectForm);
    if (local === "unwrapped" && isWrapperDesc(message))
      return this.#named(scalarJsonForm(message.fields[0].scalar, this.#style));
    return { name: this.#names.writer(message) };
  }

  #named(form: JsonForm): string | { readonly name: string } {
    return typeof form === "string" ? form : { name: this.#names.name(form) };
  }
}
