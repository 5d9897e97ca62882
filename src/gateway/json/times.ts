import { create, fromJson } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";

/**
 * Parses a google.protobuf.Timestamp from its JSON form, an RFC 3339 time.
 *
 * @returns `undefined` when the text is not such a time: a day that does not exist, a leap second (protobuf has none),
 * more than nine decimal places, or a time before year 1 or after year 9999 in UTC
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  // protobuf-es takes February 30 for March 1, and 24:00 for the next day.
  const date = text.slice(0, 10);
  const midnightMs = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(midnightMs) || !new Date(midnightMs).toISOString().startsWith(date)) return undefined;
  if (text.startsWith("24", 11)) return undefined;
  try {
    return fromJson(TimestampSchema, text);
  } catch {
    return undefined;
  }
}

// google.protobuf.Duration in JSON: seconds with up to nine decimal places, and the unit. No more than twelve digits
// can be in range.
const secondsWithUnit = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$/;

// google.protobuf.Duration: 10,000 years, counted as 315,576,000,000 seconds.
const durationSecondsMax = 315_576_000_000;

/**
 * Parses a google.protobuf.Duration from its JSON form: `1.5s`, `-0.000000001s`.
 *
 * @returns `undefined` when the text is not a duration, or is beyond ±315,576,000,000 seconds
 */
export function parseDuration(text: string): Duration | undefined {
  const match = secondsWithUnit.exec(text);
  if (match === null) return undefined;
  const seconds = Number(match[2]);
  const nanos = Number((match[3] ?? "").padEnd(9, "0"));
  if (seconds > durationSecondsMax || (seconds === durationSecondsMax && nanos > 0)) return undefined;
  // Seconds and nanos have the same sign. A zero must not become JavaScript's -0.
  const negative = match[1] === "-";
  return create(DurationSchema, {
    seconds: negative ? -BigInt(seconds) : BigInt(seconds),
    nanos: negative && nanos > 0 ? -nanos : nanos,
  });
}
