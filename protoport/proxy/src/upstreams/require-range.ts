import { inspect } from "node:util";

/** @throws RangeError if the value is not a number from `least` to `most` */
export function requireRange(name: string, value: number, least: number, most: number): void {
  // A JavaScript caller may pass a string, for example from an environment variable.
  if (typeof value === "number" && value >= least && value <= most) return;
  throw new RangeError(`${name} must be between ${least} and ${most}, got ${inspect(value)}`);
}
