import type { DescEnum, DescEnumValue, DescField, DescMessage } from "@bufbuild/protobuf";
import { memoize } from "../codegen.ts";

interface Named {
  readonly name: string;
  readonly jsonName: string;
}

// A JSON name takes precedence over a proto name, as in Go and C#, so that a field written by its JSON name is read as
// the same field. In proto2, several fields may share a JSON name. The shared name selects the field whose proto name
// equals it, or else the first field.
function byNames<Desc extends Named>(descs: readonly Desc[]): ReadonlyMap<string, Desc> {
  const byName = new Map(descs.toReversed().map((desc) => [desc.jsonName, desc]));
  for (const desc of descs) {
    if (desc.name === desc.jsonName || !byName.has(desc.name)) byName.set(desc.name, desc);
  }
  return byName;
}

/** Returns a message's fields by proto name and by JSON name. */
export const fieldsByName: (message: DescMessage) => ReadonlyMap<string, DescField> = memoize((message: DescMessage) =>
  byNames(message.fields),
);

/** Returns an enum's values by proto name and by JSON name. The names are case-sensitive. */
export const enumValuesByName: (desc: DescEnum) => ReadonlyMap<string, DescEnumValue> = memoize((desc: DescEnum) =>
  byNames(desc.values),
);

/** Finds a field by its JSON name or its proto name. A JSON name takes precedence over a proto name. */
export function findField(message: DescMessage, name: string): DescField | undefined {
  return fieldsByName(message).get(name);
}

/**
 * Returns the name that a field has in JSON. The name is the JSON name, or the proto name with `useProtoFieldName`. If
 * {@link findField} finds another field by this name, the field's other name is returned.
 */
export function jsonNameOf(field: DescField, { useProtoFieldName }: { readonly useProtoFieldName?: boolean }): string {
  const { name, jsonName, parent } = field;
  const names = useProtoFieldName === true ? [name, jsonName] : [jsonName, name];
  return names.find((each) => findField(parent, each) === field) ?? jsonName;
}

/** Returns an enum value's number by its name, or `undefined` if there is no such value. */
export function enumNumberByName(desc: DescEnum, name: string): number | undefined {
  return enumValuesByName(desc).get(name)?.number;
}
