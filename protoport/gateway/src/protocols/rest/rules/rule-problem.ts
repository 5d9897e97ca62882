/** A mistake in a rule, which is reported to the rule's author. Other errors while rules are compiled are defects. */
export class RuleProblem extends Error {}

/** A rule that names a field which its message lacks. */
export class UnknownFieldProblem extends RuleProblem {}
