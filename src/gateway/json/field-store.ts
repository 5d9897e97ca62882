import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** The properties of a protobuf-es message, by local name. */
export type Fields = Record<string, unknown>;

/**
 * A message, or another object inside of one, as a bag of properties: how it is built from descriptors.
 *
 * @throws TypeError when it is no object, which a protobuf-es message of the right type never holds
 */
export function fieldsOf(value: unknown): Fields {
  if (isFields(value)) return value;
  throw new TypeError("not a message");
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

/** Writes a value to its field. */
export type StoreField = (fields: Fields, value: unknown) => void;

/**
 * Makes the function that puts a value where protobuf-es keeps it: a property, or the case and value
 * of a oneof. The value has to be in its local form.
 */
export function createFieldStore(field: DescField): StoreField {
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

/** Reads the local value of a field; `undefined` where another member of its oneof is set, or nothing. */
export function loadField(fields: Fields, field: DescField): unknown {
  if (field.oneof === undefined) return fields[field.localName];
  const group = fieldsOf(fields[field.oneof.localName]);
  return group["case"] === field.localName ? group["value"] : undefined;
}

/** How a field of message type holds its values. */
export type LocalForm = "message" | "unwrapped" | "json-object";

/**
 * The form in which protobuf-es keeps the values of a message-typed field: google.protobuf.Struct as a
 * plain object (but not inside google.protobuf.Value), a wrapper as its bare value (singular and outside
 * of a oneof), everything else as the message.
 */
export function localFormOf(field: DescField & { readonly message: DescMessage }): LocalForm {
  if (field.message.typeName === "google.protobuf.Struct") {
    return field.parent.typeName === "google.protobuf.Value" ? "message" : "json-object";
  }
  const bare = field.fieldKind === "message" && field.oneof === undefined && isWrapperDesc(field.message);
  return bare ? "unwrapped" : "message";
}

/** Sets a property even where its name is `__proto__`, which plain assignment would take for the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
