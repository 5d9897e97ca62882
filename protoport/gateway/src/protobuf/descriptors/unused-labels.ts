import { labelsOf, type VisibilityOptions } from "./hide-restricted.ts";

/** Returns a line for each allowed visibility label that no definition uses, or if no definition has a rule. */
export function describeUnusedLabels(
  visibility: VisibilityOptions | undefined,
  used: ReadonlySet<string>,
): readonly string[] {
  const { allow } = visibility ?? {};
  if (allow?.length === 0 && used.size === 0)
    return ["visibility has no effect: the definitions have no google.api.visibility rules"];
  const hint = used.size === 0 ? "the definitions have no labels" : `the definitions use ${[...used].join(", ")}`;
  return (allow ?? [])
    .filter((label) => !labelsOf(label).some((each) => used.has(each)))
    .map((label) => `the visibility label ${JSON.stringify(label)} has no effect: ${hint}`);
}
