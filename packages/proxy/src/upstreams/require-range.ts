import { inspect } from "node:util";

/** @throws RangeError for a number that is none, or out of range */
export function requireRange(name: string, value: number, least: number, most: number): void {
  // A program without types may hand on a text of its environment.
  if (typeof value === "number" && value >= least && value <= most) return;
  throw new RangeError(`${name} must be from ${least} to ${most}, not ${inspect(value)}`);
}
