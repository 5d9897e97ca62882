import { create } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { parseFractionNanos } from "./nanos.ts";

// google.protobuf.Duration in JSON: seconds with at most nine digits of fraction, and the unit. Twelve
// digits are the longest that can be in range.
const secondsWithUnit = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$/;

// google.protobuf.Duration: 10,000 years, counted as 315,576,000,000 seconds.
const secondsMax = 315_576_000_000;

/**
 * Parses seconds with the unit `s` as google.protobuf.Duration takes them: `1.5s`, `-0.000000001s`.
 *
 * @returns the duration, or `undefined` when the text is none or beyond ±315,576,000,000 seconds
 */
export function parseDuration(text: string): Duration | undefined {
  const match = secondsWithUnit.exec(text);
  if (match === null) return undefined;
  const seconds = Number(match[2]);
  const nanos = parseFractionNanos(match[3]);
  if (seconds > secondsMax || (seconds === secondsMax && nanos > 0)) return undefined;
  // Seconds and nanos carry the same sign; zero has none, also where JavaScript would make it -0.
  const negative = match[1] === "-";
  return create(DurationSchema, {
    seconds: negative ? -BigInt(seconds) : BigInt(seconds),
    nanos: negative && nanos > 0 ? -nanos : nanos,
  });
}
