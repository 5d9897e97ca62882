import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { parseFractionNanos } from "./nanos.ts";

// RFC 3339 §5.6 in the profile of google.protobuf.Timestamp: four-digit year, upper-case T and Z, at most nine digits of fraction.
const rfc3339 =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))$/;

// google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z.
const secondsMin = -62_135_596_800;
const secondsMax = 253_402_300_799;

/**
 * Parses an RFC 3339 time as google.protobuf.Timestamp takes it.
 *
 * @returns the timestamp, or `undefined` when the text is no such time: no such day, a leap second
 * (protobuf's time has none), more than nanoseconds, or before year 1 or after year 9999 in UTC
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  // Date.UTC takes years below 100 for 19xx, so the year is set by itself; a day that rolls over is no day.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const offsetSeconds = parseOffsetSeconds(match[8], Number(match[9]), Number(match[10]));
  if (offsetSeconds === undefined) return undefined;
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offsetSeconds;
  if (seconds < secondsMin || seconds > secondsMax) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: parseFractionNanos(match[7]) });
}

function parseOffsetSeconds(sign: string | undefined, hours: number, minutes: number): number | undefined {
  if (sign === undefined) return 0;
  if (hours > 23 || minutes > 59) return undefined;
  const seconds = hours * 3600 + minutes * 60;
  return sign === "-" ? -seconds : seconds;
}
