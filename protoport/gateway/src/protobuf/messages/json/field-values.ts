import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { FieldProblem } from "./field-problem.ts";

/** A protobuf-es message's fields as plain properties, by local name. */
export type FieldValues = Record<string, unknown>;

/** Narrows the value of a message field to its properties. @throws TypeError if the value is not an object */
export function asFieldValues(value: unknown): FieldValues {
  if (isFieldValues(value)) return value;
  throw new TypeError("expected a message");
}

function isFieldValues(value: unknown): value is FieldValues {
  return typeof value === "object" && value !== null;
}

/** Sets a field to a value in its {@link LocalForm}. */
export type FieldSetter = (fields: FieldValues, value: unknown) => void;

/** Creates the function that stores a field's value as protobuf-es does. A oneof's value is stored with its case. */
export function createFieldSetter(field: DescField): FieldSetter {
  const name = field.localName;
  if (field.oneof === undefined) {
    return (fields, value) => {
      fields[name] = value;
    };
  }
  const group = field.oneof.localName;
  return (fields, value) => {
    fields[group] = { case: name, value };
  };
}

/** Returns a field's value, or `undefined` if the field is not set. */
export function loadField(fields: FieldValues, field: DescField): unknown {
  if (field.oneof === undefined) {
    const value = fields[field.localName];
    // A method that every object inherits, such as `hasOwnProperty`, is not a value.
    return typeof value === "function" ? undefined : value;
  }
  const group = asFieldValues(fields[field.oneof.localName]);
  return group["case"] === field.localName ? group["value"] : undefined;
}

/** Checks that no other member of the field's oneof is set. @throws FieldProblem with the other member's name */
export function refuseOtherMember(fields: FieldValues, field: DescField): void {
  if (field.oneof === undefined) return;
  const selectedCase = asFieldValues(fields[field.oneof.localName])["case"];
  const otherField = field.oneof.fields.find(({ localName }) => localName === selectedCase);
  if (otherField !== undefined && otherField !== field)
    throw new FieldProblem(`cannot be set together with ${otherField.name}`);
}

/** How protobuf-es stores a message-typed field's values. */
export type LocalForm = "message" | "unwrapped" | "json-object";

/**
 * Returns how protobuf-es stores a message-typed field's values. A google.protobuf.Struct is a plain object, except
 * inside google.protobuf.Value. A singular wrapper outside a oneof is its bare value. Other values are messages.
 */
export function localFormOf(field: DescField & { readonly message: DescMessage }): LocalForm {
  if (field.message.typeName === "google.protobuf.Struct") {
    return field.parent.typeName === "google.protobuf.Value" ? "message" : "json-object";
  }
  const isBareValue = field.fieldKind === "message" && field.oneof === undefined && isWrapperDesc(field.message);
  return isBareValue ? "unwrapped" : "message";
}

/** Sets a property, even a property named `__proto__`. A plain assignment to `__proto__` would set the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
