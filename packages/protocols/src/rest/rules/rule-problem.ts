/** A mistake in a rule, reported to its author. Any other error while rules are compiled is a defect. */
export class RuleProblem extends Error {}
