const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

/** Parses "30m", "24h", "90d" or "2w" to milliseconds. Returns `undefined` for any other text. */
export function parseDurationMs(text: string): number | undefined {
  // Accepts at most five digits, because 99999w (1,900 years) is within the range of Date.
  const [, count, unit = ""] = /^([1-9]\d{0,4})([mhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (unitsMs[unit] ?? Number.NaN);
}
