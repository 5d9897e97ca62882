import type { DescEnum } from "@bufbuild/protobuf";
import type { ChangeList } from "./change.ts";
import { compareVisibility, compareVisibilityOfType } from "./compare-visibility.ts";

/** Compares two enums. Values correspond if they have the same name, or otherwise the same number. */
export function compareEnums(before: DescEnum, now: DescEnum, changes: ChangeList): void {
  compareVisibilityOfType(before, now, changes);
  for (const old of before.values) {
    const value = now.values.find(({ name }) => name === old.name) ?? now.value[old.number];
    compareVisibility(old, value ?? { missingIn: now }, `${before.typeName}.${old.name}`, changes);
  }
}
