import type { DescField, DescMessage, Message, Registry } from "@bufbuild/protobuf";
import { isFieldSet, isMessage } from "@bufbuild/protobuf";
import {
  asFieldValues,
  type BoundFields,
  hasCustomJsonRepresentation,
  loadField,
  memoize,
} from "@protoport/gateway/messages";
import { RefusalError } from "./refusal.ts";
import { escapeUrlValue, type UrlValues } from "./url-values.ts";

/** Options for writing the parameters of a query. */
export interface QueryStyle {
  readonly texts: UrlValues;
  /** Whether parameters have proto names rather than JSON names. */
  readonly useProtoFieldName: boolean;
  /** Registry with the extensions that a message may have. A query cannot represent extensions. */
  readonly registry: Registry | undefined;
}

/**
 * Returns the query for a message, such as `a.b=1&c=x&c=y`, with all fields except those in path or body.
 *
 * @throws RefusalError that names a field if a query cannot represent the field
 */
export function writeQuery(desc: DescMessage, message: Message, bound: BoundFields, style: QueryStyle): string {
  return parametersOf(desc, message, bound, "", style).join("&");
}

function parametersOf(
  desc: DescMessage,
  message: Message,
  bound: BoundFields | undefined,
  prefix: string,
  style: QueryStyle,
): string[] {
  const extension = message.$unknown?.find(({ no }) => style.registry?.getExtensionFor(desc, no) !== undefined);
  if (extension !== undefined)
    throw new RefusalError(`${prefix}${desc.typeName}: extensions cannot be sent in a query`);
  const parameters: string[] = [];
  for (const field of desc.fields) {
    const nestedBound = bound?.get(field);
    if (nestedBound === "whole") continue;
    const write = style.texts(field);
    if (write === undefined) {
      if (!isFieldSet(message, field)) continue;
      const name = parameterName(prefix, field, style);
      parameters.push(...messageParameters(field, message, nestedBound, name, style));
      continue;
    }
    for (const text of write(asFieldValues(message))) {
      const name = parameterName(prefix, field, style);
      parameters.push(`${escapeUrlValue(name, name)}=${escapeUrlValue(name, text)}`);
    }
  }
  return parameters;
}

/** Returns the parameter name for a field. @throws RefusalError if all names of the field are ambiguous */
function parameterName(prefix: string, field: DescField, { useProtoFieldName }: QueryStyle): string {
  const { json, proto } = parameterNamesOf(field);
  const name = useProtoFieldName ? (proto ?? json) : (json ?? proto);
  if (name === undefined)
    throw new RefusalError(`${prefix}${field.name}: each of its names is ambiguous with another field`);
  return prefix + name;
}

// Returns the names that every server resolves to this field. Servers split names at dots, and some treat brackets as a
// map key. A name that is the JSON name or proto name of another field is excluded.
const parameterNamesOf = memoize((field: DescField) => {
  const otherFields = field.parent.fields.filter((other) => other !== field);
  const [json, proto] = [field.jsonName, field.name].map((name) => {
    const isUnambiguous =
      /^[^.[\]]+$/.test(name) && otherFields.every((other) => other.name !== name && other.jsonName !== name);
    return isUnambiguous ? name : undefined;
  });
  return { json, proto };
});

function messageParameters(
  field: DescField,
  message: Message,
  below: BoundFields | undefined,
  name: string,
  style: QueryStyle,
): readonly string[] {
  const child = loadField(asFieldValues(message), field);
  if (field.fieldKind !== "message" || hasCustomJsonRepresentation(field.message) || !isMessage(child)) {
    throw new RefusalError(`${name}: ${fieldKindOf(field)} cannot be sent in a query`);
  }
  const parameters = parametersOf(field.message, child, below, `${name}.`, style);
  if (parameters.length === 0 && below === undefined)
    throw new RefusalError(`${name}: empty messages cannot be sent in a query`);
  return parameters;
}

function fieldKindOf(field: DescField): string {
  if (field.fieldKind === "map") return "maps";
  return field.fieldKind === "list" ? "repeated messages" : (field.message?.typeName ?? "messages");
}
