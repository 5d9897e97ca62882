/** @throws RangeError for a number that is none, or out of range */
export function requireRange(name: string, value: number, least: number, most: number): void {
  if (value >= least && value <= most) return;
  throw new RangeError(`${name} must be from ${least} to ${most}, not ${value}`);
}
