/** What is wrong with a rule, in words for whoever wrote it. Anything else that is thrown at the start is a fault. */
export class RuleProblem extends Error {}
