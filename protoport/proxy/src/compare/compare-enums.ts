import type { DescEnum, DescEnumValue } from "@bufbuild/protobuf";
import type { ChangeList } from "./change.ts";
import { compareVisibility, compareVisibilityOfType } from "./compare-visibility.ts";
import type { Usage } from "./usage.ts";

/** Compares two enums. Values correspond if they have the same name, or otherwise the same number. */
export function compareEnums(before: DescEnum, now: DescEnum, usage: Usage, changes: ChangeList): void {
  compareVisibilityOfType(before, now, changes);
  for (const old of before.values) compareValue(old, now, usage, changes);
  if (before.open && !now.open && usage.direction === "request")
    changes.add("enum-closed", before.typeName, now, {
      change: "the enum is closed",
      before: `${usage.request} with a number that has no name`,
      now: "400: not a value of the enum",
    });
}

function compareValue(old: DescEnumValue, now: DescEnum, { direction, request }: Usage, changes: ChangeList): void {
  const subject = `${old.parent.typeName}.${old.name}`;
  const sameName = now.values.find(({ name }) => name === old.name);
  const sameNumber = now.values.filter(({ number }) => number === old.number);
  const [first] = sameNumber;
  const isRequest = direction === "request";
  if (sameName !== undefined) {
    compareVisibility(old, sameName, subject, changes);
    if (sameName.number !== old.number)
      changes.add("enum-value-renumbered", subject, sameName, {
        change: `${old.name} is ${sameName.number} instead of ${old.number}`,
        before: `${old.number} in ${direction}s to ${request}`,
        now: "another value, or an unknown one",
      });
    // JSON responses have the first name for a number.
    else if (!isRequest && first !== sameName && old === old.parent.values.find(({ number }) => number === old.number))
      changes.add("enum-value-renamed", subject, sameName, {
        change: `${first?.name} is the first name of ${old.number}`,
        before: `"${old.name}" in responses to ${request}`,
        now: `"${first?.name}" in JSON`,
      });
    return;
  }
  if (first === undefined)
    changes.add("enum-value-removed", subject, now, {
      change: `${now.typeName} has no value ${old.name}`,
      before: `"${old.name}" in ${direction}s to ${request}`,
      now: isRequest ? `400: unknown value "${old.name}"` : `${old.number} in JSON`,
    });
  else
    changes.add("enum-value-renamed", subject, first, {
      change: `${old.name} is ${first.name}`,
      before: `"${old.name}" in ${direction}s to ${request}`,
      now: isRequest ? `400: unknown value "${old.name}"` : `"${first.name}" in JSON`,
    });
}
