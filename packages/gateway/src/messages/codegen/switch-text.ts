import { literal } from "./type-scope.ts";

/**
 * The most cases that are compared one after another. V8 does not optimise a function with many more, and then each
 * comparison takes 10 to 20 ns: 10 ms of JSON, or 2.5 ms of binary, for one message with a thousand fields.
 */
const comparedCasesMax = 100;

/**
 * Returns the text of a switch over the value of an expression: statements for each value, and for all others.
 *
 * If there are many, their places are looked up in a map, and V8 jumps to them.
 *
 * @param name - returns the name of a value
 */
export function switchText(
  expression: string,
  cases: ReadonlyMap<string | number, string>,
  otherwise: string,
  name: (value: unknown) => string,
): string {
  // No test can tell: one case more or less takes no time that could be measured.
  const isLong = cases.size > comparedCasesMax;
  const places = new Map([...cases.keys()].map((value, place) => [value, place]));
  const labelled = [...cases].map(
    ([value, statements], place) => `case ${literal(isLong ? place : value)}:\n${statements}\n`,
  );
  return `switch (${isLong ? `${name(places)}.get(${expression})` : expression}) {
${labelled.join("")}default:
${otherwise}
}`;
}
