import type { DescExtension, DescField, DescMessage } from "@bufbuild/protobuf";
import { create, isMessage, setExtension } from "@bufbuild/protobuf";
import { createFieldReader } from "./field-reader.ts";
import type { FieldValues } from "./field-values.ts";
import { memoize } from "../codegen/index.ts";
import type { FieldReader, ReadContext } from "./read-context.ts";
import { requireFieldsRead } from "./required-fields.ts";

const readerOf = memoize(createExtensionReader);

/** Finds the reader for a key such as `[package.name]`, if the registry has this extension of the message. */
export function findExtensionReader(context: ReadContext, desc: DescMessage, key: string): FieldReader | undefined {
  const { registry } = context;
  if (registry === undefined || !key.startsWith("[") || !key.endsWith("]")) return undefined;
  const extension = registry.getExtension(key.slice(1, -1));
  if (extension?.extendee.typeName !== desc.typeName) return undefined;
  return readerOf(extension);
}

// Creates the reader for an extension. protobuf-es stores extensions as unknown fields, so the value is first read into
// a message without other fields.
function createExtensionReader(extension: DescExtension): FieldReader {
  const { extendee, jsonName } = extension;
  const fieldMembers = { kind: "field", parent: extendee, name: jsonName, localName: "value", oneof: undefined };
  const field = { ...extension, ...fieldMembers };
  if (!isField(field)) throw new TypeError(`extension ${extension.typeName} is not a field`);
  const singleFieldMessage: DescMessage = { ...extendee, fields: [field], members: [field], oneofs: [] };
  const readField = createFieldReader(field);
  return {
    field,
    nullIsValue: readField.nullIsValue,
    read(context, fields) {
      const values: FieldValues = create(singleFieldMessage);
      readField.read(context, values, undefined);
      // setExtension() writes the value in binary, which fails if required fields are missing.
      if (extension.message !== undefined) requireFieldsRead(context, extension.message, values["value"]);
      // The value is missing if the text has an unknown enum name, which is ignored.
      if (Object.hasOwn(values, "value") && isMessage(fields)) setExtension(fields, extension, values["value"]);
    },
  };
}

// A type guard, because TypeScript does not accept a `DescExtension` with a scalar type as a `DescField`.
function isField(desc: { readonly kind: string }): desc is DescField {
  return desc.kind === "field";
}
