/** Returns a line for each allowed label of visibility that no definition uses. */
export function describeUnusedLabels(allow: readonly string[], used: ReadonlySet<string>): readonly string[] {
  const hint = used.size === 0 ? "the definitions have no labels" : `the definitions use ${[...used].join(", ")}`;
  return allow
    .filter((label) => !used.has(label.trim()))
    .map((label) => `the visibility label ${JSON.stringify(label)} has no effect: ${hint}`);
}
