import type { DescField, DescMessage, JsonValue, JsonWriteOptions, Message } from "@bufbuild/protobuf";
import { toJson, toJsonString } from "@bufbuild/protobuf";

/** Options of {@link writeJson}: those of Connect. */
export type WriteJsonOptions = Partial<JsonWriteOptions>;

/**
 * Writes a message as proto3 JSON text: 64-bit integers as strings, fields that are not set left out.
 *
 * @throws Error when the message cannot be written, which is the handler's fault: a Timestamp out of range, an Any
 * whose type is not in the registry, a field mask with a name that does not survive lowerCamelCase
 */
export function writeJson(desc: DescMessage, message: Message, options: WriteJsonOptions = {}): string {
  return toJsonString(desc, message, options);
}

/**
 * Creates the function that writes one field of a message; it returns `undefined` when the field would be left out.
 *
 * Other fields are ignored, so that none of them can make the writing fail.
 */
export function createJsonFieldWriter(
  field: DescField,
  options: WriteJsonOptions,
): (message: Message) => JsonValue | undefined {
  // protobuf-es writes the fields of the descriptor, so a descriptor with fewer of them writes part of the message.
  const alone: DescMessage = { ...field.parent, fields: [field] };
  const name = options.useProtoFieldName === true ? field.name : field.jsonName;
  return (message) => {
    // Unknown fields are dropped, because toJson() writes extensions from them.
    const known = message.$unknown === undefined ? message : { ...message, $unknown: undefined };
    const json = toJson(alone, known, options);
    return typeof json === "object" && json !== null && !Array.isArray(json) ? json[name] : undefined;
  };
}
