import type { DescEnum } from "@bufbuild/protobuf";

const namesByEnum = new WeakMap<DescEnum, ReadonlyMap<string, number>>();

/** Returns the number of an enum value by its name, which is case-sensitive; `undefined` when there is none. */
export function enumNumberByName(desc: DescEnum, name: string): number | undefined {
  let names = namesByEnum.get(desc);
  if (names === undefined) {
    names = new Map([
      ...desc.values.map((value): [string, number] => [value.jsonName, value.number]),
      ...desc.values.map((value): [string, number] => [value.name, value.number]),
    ]);
    namesByEnum.set(desc, names);
  }
  return names.get(name);
}

// A protobuf identifier. Any other text cannot be a name from a newer schema.
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Returns whether a text could be a name that only a newer schema has: it is an identifier, but not in this enum. */
export function isUnknownEnumName(desc: DescEnum, text: string): boolean {
  return identifier.test(text) && enumNumberByName(desc, text) === undefined;
}

/** Returns whether the enum may hold the number: any int32 if it is open, only declared ones if it is closed. */
export function enumHasNumber(desc: DescEnum, number: number): boolean {
  return desc.open || desc.value[number] !== undefined;
}
