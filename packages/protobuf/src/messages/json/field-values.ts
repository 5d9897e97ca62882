import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { FieldProblem } from "./field-problem.ts";

/** A protobuf-es message's fields as plain properties, by local name. */
export type FieldValues = Record<string, unknown>;

/**
 * Returns a value inside a message as plain properties.
 *
 * @throws TypeError when it is not an object, which cannot happen in a message with the right type
 */
export function asFieldValues(value: unknown): FieldValues {
  if (isFieldValues(value)) return value;
  throw new TypeError("expected a message");
}

function isFieldValues(value: unknown): value is FieldValues {
  return typeof value === "object" && value !== null;
}

/** Sets a field to a value in its {@link LocalForm}. */
export type FieldSetter = (fields: FieldValues, value: unknown) => void;

/** Creates the function that stores a value as protobuf-es does: in a property, or as case and oneof value. */
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

/** Returns a field value, or `undefined` if it is not set. A oneof member is not set if another member is. */
export function loadField(fields: FieldValues, field: DescField): unknown {
  if (field.oneof === undefined) {
    const value = fields[field.localName];
    // A method that every object inherits, such as `hasOwnProperty`, is not a value.
    return typeof value === "function" ? undefined : value;
  }
  const group = asFieldValues(fields[field.oneof.localName]);
  return group["case"] === field.localName ? group["value"] : undefined;
}

/** Checks that the field's oneof has no other member set. @throws FieldProblem that names the other member */
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
 * Returns how protobuf-es stores a message-typed field's values: google.protobuf.Struct as a plain object (except
 * inside google.protobuf.Value), a wrapper as its bare value (if singular and not in a oneof), all others as messages.
 */
export function localFormOf(field: DescField & { readonly message: DescMessage }): LocalForm {
  if (field.message.typeName === "google.protobuf.Struct") {
    return field.parent.typeName === "google.protobuf.Value" ? "message" : "json-object";
  }
  const isBareValue = field.fieldKind === "message" && field.oneof === undefined && isWrapperDesc(field.message);
  return isBareValue ? "unwrapped" : "message";
}

/** Sets a property, even one named `__proto__`, for which a plain assignment would set the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
