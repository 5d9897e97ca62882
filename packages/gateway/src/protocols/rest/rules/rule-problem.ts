/** A problem of a rule, for the author of the rule. Any other error at start is a defect. */
export class RuleProblem extends Error {}
