import type { DescEnum } from "@bufbuild/protobuf";

const namesByEnum = new WeakMap<DescEnum, ReadonlyMap<string, number>>();

/** The number of an enum value by its name, exact in case; `undefined` when the enum has no such name. */
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

/** Whether the enum may hold the number: any int32 when it is open, a declared one when it is closed. */
export function enumHasNumber(desc: DescEnum, number: number): boolean {
  return desc.open || desc.value[number] !== undefined;
}
