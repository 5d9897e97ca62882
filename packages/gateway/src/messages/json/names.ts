import type { DescEnum, DescEnumValue, DescField, DescMessage } from "@bufbuild/protobuf";
import { oncePer } from "../codegen/index.ts";

interface Named {
  readonly name: string;
  readonly jsonName: string;
}

// A JSON name goes before a proto name, as in the JSON of Go and C#: what is written by its JSON name is read as the same.
// Of several with one JSON name, which proto2 allows, it means the one whose proto name it is too, or else the first.
function byNames<Desc extends Named>(descs: readonly Desc[]): ReadonlyMap<string, Desc> {
  const byName = new Map(descs.toReversed().map((desc) => [desc.jsonName, desc]));
  for (const desc of descs) {
    if (desc.name === desc.jsonName || !byName.has(desc.name)) byName.set(desc.name, desc);
  }
  return byName;
}

/** Returns the fields of a message by all their names: the proto name and the JSON name. */
export const fieldsByName: (message: DescMessage) => ReadonlyMap<string, DescField> = oncePer((message: DescMessage) =>
  byNames(message.fields),
);

/** Returns the values of an enum by all their names, which are case-sensitive. */
export const enumValuesByName: (desc: DescEnum) => ReadonlyMap<string, DescEnumValue> = oncePer((desc: DescEnum) =>
  byNames(desc.values),
);

/** Finds a field by its JSON name or its proto name, as requests name it. If they are of two fields, by the JSON name. */
export function findField(message: DescMessage, name: string): DescField | undefined {
  return fieldsByName(message).get(name);
}

/**
 * Returns the name by which JSON has a field: its JSON name, or with `useProtoFieldName` its proto name. The other one, if
 * {@link findField} finds another field by that.
 */
export function jsonNameOf(field: DescField, { useProtoFieldName }: { readonly useProtoFieldName?: boolean }): string {
  const { name, jsonName, parent } = field;
  const names = useProtoFieldName === true ? [name, jsonName] : [jsonName, name];
  return names.find((each) => findField(parent, each) === field) ?? jsonName;
}

/** Returns the number of an enum value by its name; `undefined` when there is none. */
export function enumNumberByName(desc: DescEnum, name: string): number | undefined {
  return enumValuesByName(desc).get(name)?.number;
}

// A protobuf identifier. Any other text cannot be a name from a newer schema.
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Returns whether a text could be a name that only a newer schema has: it is an identifier, but not in this enum. */
export function isUnknownEnumName(desc: DescEnum, text: string): boolean {
  return identifier.test(text) && enumNumberByName(desc, text) === undefined;
}
