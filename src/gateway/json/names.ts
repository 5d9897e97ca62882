import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { oncePer } from "./once-per.ts";

interface Named {
  readonly name: string;
  readonly jsonName: string;
}

// If the JSON name of one is the proto name of another, it means the latter.
function byNames<Desc extends Named>(descs: readonly Desc[]): ReadonlyMap<string, Desc> {
  const byJsonName = descs.map((desc): [string, Desc] => [desc.jsonName, desc]);
  return new Map([...byJsonName, ...descs.map((desc): [string, Desc] => [desc.name, desc])]);
}

const fieldsOf = oncePer((message: DescMessage) => byNames(message.fields));
const valuesOf = oncePer((desc: DescEnum) => byNames(desc.values));

/** Finds a field by its proto name or its JSON name. */
export function findField(message: DescMessage, name: string): DescField | undefined {
  return fieldsOf(message).get(name);
}

/** Returns the number of an enum value by its name, which is case-sensitive; `undefined` when there is none. */
export function enumNumberByName(desc: DescEnum, name: string): number | undefined {
  return valuesOf(desc).get(name)?.number;
}

// A protobuf identifier. Any other text cannot be a name from a newer schema.
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Returns whether a text could be a name that only a newer schema has: it is an identifier, but not in this enum. */
export function isUnknownEnumName(desc: DescEnum, text: string): boolean {
  return identifier.test(text) && enumNumberByName(desc, text) === undefined;
}
