import { labelsOf, type VisibilityOptions } from "./hide-restricted.ts";

/** Returns a line for each allowed visibility label that no definition uses. */
export function describeUnusedLabels(allow: VisibilityOptions["allow"], used: ReadonlySet<string>): readonly string[] {
  const hint = used.size === 0 ? "the definitions have no labels" : `the definitions use ${[...used].join(", ")}`;
  return allow
    .filter((label) => !labelsOf(label).some((each) => used.has(each)))
    .map((label) => `the visibility label ${JSON.stringify(label)} has no effect: ${hint}`);
}
