import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp } from "@bufbuild/protobuf/wkt";

// A google.protobuf.Timestamp is between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z.
const minTimestampSeconds = -62_135_596_800;
const maxTimestampSeconds = 253_402_300_799;

/**
 * Parses a google.protobuf.Timestamp from its JSON form, an RFC 3339 time.
 *
 * @returns `undefined` for a text that is not an RFC 3339 time, and for a day that does not exist, a leap second, more
 * than nine decimal places, or a time before year 1 or after year 9999 in UTC
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  if (!hasSeparators(text)) return undefined;
  const day = parseDate(parseDigits(text, 0, 4), parseDigits(text, 5, 7), parseDigits(text, 8, 10));
  const timeOfDay = parseClock(text, 11);
  const second = parseDigits(text, 17, 19);
  const endOfDigits = text.charCodeAt(19) === point ? endOfDigitsOf(text, 20) : 19;
  const nanos = endOfDigits === 19 ? 0 : parseNanos(text, 20, endOfDigits);
  const offset = parseOffset(text, endOfDigits);
  if (second > 59) return undefined;
  const seconds = day * secondsPerDay + timeOfDay + second - offset;
  // The sum is NaN if a summand is NaN.
  if (!(seconds >= minTimestampSeconds && seconds <= maxTimestampSeconds) || Number.isNaN(nanos)) return undefined;
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos };
}

// Returns whether date and time have their separators. Comparing characters instead of codes takes 10 ns longer.
function hasSeparators(text: string): boolean {
  const isDate = text.charCodeAt(4) === dash && text.charCodeAt(7) === dash && text.charCodeAt(10) === T;
  return isDate && text.charCodeAt(13) === colon && text.charCodeAt(16) === colon;
}

const secondsPerDay = 86_400;
const daysPerEra = 146_097;
const zero = 0x30;

// Parses ASCII digits, and returns NaN for other characters. A regular expression takes three times as long.
function parseDigits(text: string, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - zero;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = 10 * value + digit;
  }
  return value;
}

function endOfDigitsOf(text: string, start: number): number {
  let end = start;
  while (text.charCodeAt(end) >= zero && text.charCodeAt(end) <= zero + 9) end++;
  return end;
}

// Parses one to nine decimal places as nanoseconds, or returns NaN.
function parseNanos(text: string, start: number, end: number): number {
  return parseDigits(text, start, end) * (nanosOfLastPlace[end - start] ?? Number.NaN);
}

// Nanoseconds in the last decimal place, by the number of places. Calculating them as a power takes 20 ns longer.
const nanosOfLastPlace: readonly number[] = [Number.NaN, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 100, 10, 1];

// Parses hours and minutes, and returns them in seconds. Returns NaN for an invalid time.
function parseClock(text: string, start: number): number {
  const hours = parseDigits(text, start, start + 2);
  const minutes = parseDigits(text, start + 3, start + 5);
  return hours <= 23 && minutes <= 59 ? hours * 3600 + minutes * 60 : Number.NaN;
}

// Parses the offset from UTC at the end of a time, and returns it in seconds. Returns NaN for an invalid offset.
function parseOffset(text: string, start: number): number {
  const sign = text.charCodeAt(start);
  if (sign === Z) return text.length === start + 1 ? 0 : Number.NaN;
  if ((sign !== plus && sign !== dash) || text.charCodeAt(start + 3) !== colon || text.length !== start + 6)
    return Number.NaN;
  const seconds = parseClock(text, start + 1);
  return sign === dash ? -seconds : seconds;
}

// Returns a date as days since 1970-01-01, or NaN for a day that does not exist. See dateOf for the calendar.
function parseDate(year: number, month: number, day: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && isLeap ? 29 : (daysOfMonths[month] ?? Number.NaN);
  if (!(day >= 1 && day <= days)) return Number.NaN;
  const yearFromMarch = month < 3 ? year - 1 : year;
  const monthFromMarch = month < 3 ? month + 9 : month - 3;
  const leapDays = Math.floor(yearFromMarch / 4) - Math.floor(yearFromMarch / 100) + Math.floor(yearFromMarch / 400);
  return 365 * yearFromMarch + leapDays + Math.floor((153 * monthFromMarch + 2) / 5) + day - 1 - daysBefore1970;
}

const daysOfMonths: readonly (number | undefined)[] = [undefined, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
// Number of days from 0000-03-01 to 1970-01-01.
const daysBefore1970 = 719_468;

/**
 * Prints a google.protobuf.Timestamp in UTC, with no, three, six or nine decimal places.
 *
 * @throws Error if the time is before year 1 or after year 9999, or if `nanos` is not between 0 and 999,999,999
 */
export function printTimestamp({ seconds, nanos }: Pick<Timestamp, "seconds" | "nanos">): string {
  const time = Number(seconds);
  if (time < minTimestampSeconds || time > maxTimestampSeconds)
    throw new Error(`a Timestamp must be between year 1 and 9999, got ${time} seconds`);
  if (!isNanos(nanos) || nanos < 0)
    throw new Error(`the nanos of a Timestamp must be between 0 and 999999999, got ${nanos}`);
  const day = Math.floor(time / secondsPerDay);
  const second = time - day * secondsPerDay;
  const clock = quotient(second, 3600) * 10_000 + (quotient(second, 60) % 60) * 100 + (second % 60);
  return joinDigits(dateOf(day), clock, nanos);
}

// Converts a number of days since 1970-01-01 to a date's digits in the proleptic Gregorian calendar, such as 20240229.
// For this calculation, a year begins in March, so that the leap day is the year's last day. A 400-year era begins with
// year 0. A Date takes ten times as long.
function dateOf(day: number): number {
  const sinceYear0 = day + daysBefore1970;
  const era = Math.floor(sinceYear0 / daysPerEra);
  const dayOfEra = sinceYear0 - era * daysPerEra;
  const leapDays = quotient(dayOfEra, 1460) - quotient(dayOfEra, 36_524) + quotient(dayOfEra, daysPerEra - 1);
  const yearOfEra = quotient(dayOfEra - leapDays, 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + quotient(yearOfEra, 4) - quotient(yearOfEra, 100));
  const monthFromMarch = quotient(5 * dayOfYear + 2, 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = era * 400 + yearOfEra + (month < 3 ? 1 : 0);
  return (year * 100 + month) * 100 + dayOfYear - quotient(153 * monthFromMarch + 2, 5) + 1;
}

// Divides two integers from 0 to 2^31 - 1 and rounds down. `| 0` makes the result a small integer for V8.
function quotient(value: number, unit: number): number {
  return (value / unit) | 0;
}

// Creates the string in one call. V8 stores a concatenated string as a tree, which makes JSON.stringify much slower.
function joinDigits(date: number, clock: number, nanos: number): string {
  const [y1, y2, y3, y4] = [
    digitsCodeOf(date, 1e7),
    digitsCodeOf(date, 1e6),
    digitsCodeOf(date, 1e5),
    digitsCodeOf(date, 1e4),
  ];
  const [m1, m2, d1, d2] = [
    digitsCodeOf(date, 1e3),
    digitsCodeOf(date, 100),
    digitsCodeOf(date, 10),
    digitsCodeOf(date, 1),
  ];
  const [h1, h2, n1, n2] = [
    digitsCodeOf(clock, 1e5),
    digitsCodeOf(clock, 1e4),
    digitsCodeOf(clock, 1e3),
    digitsCodeOf(clock, 100),
  ];
  const [s1, s2] = [digitsCodeOf(clock, 10), digitsCodeOf(clock, 1)];
  const text = String.fromCharCode;
  if (nanos === 0) return text(y1, y2, y3, y4, dash, m1, m2, dash, d1, d2, T, h1, h2, colon, n1, n2, colon, s1, s2, Z);
  const [f1, f2, f3] = [digitsCodeOf(nanos, 1e8), digitsCodeOf(nanos, 1e7), digitsCodeOf(nanos, 1e6)];
  const [f4, f5, f6] = [digitsCodeOf(nanos, 1e5), digitsCodeOf(nanos, 1e4), digitsCodeOf(nanos, 1e3)];
  const [f7, f8, f9] = [digitsCodeOf(nanos, 100), digitsCodeOf(nanos, 10), digitsCodeOf(nanos, 1)];
  // oxfmt-ignore
  if (nanos % 1e6 === 0) return text(y1, y2, y3, y4, dash, m1, m2, dash, d1, d2, T, h1, h2, colon, n1, n2, colon, s1, s2, point, f1, f2, f3, Z);
  // oxfmt-ignore
  if (nanos % 1e3 === 0) return text(y1, y2, y3, y4, dash, m1, m2, dash, d1, d2, T, h1, h2, colon, n1, n2, colon, s1, s2, point, f1, f2, f3, f4, f5, f6, Z);
  // oxfmt-ignore
  return text(y1, y2, y3, y4, dash, m1, m2, dash, d1, d2, T, h1, h2, colon, n1, n2, colon, s1, s2, point, f1, f2, f3, f4, f5, f6, f7, f8, f9, Z);
}

// Returns the character code for a number's digit at a decimal unit, such as 100.
function digitsCodeOf(value: number, unit: number): number {
  return zero + (quotient(value, unit) % 10);
}

const [dash, plus, colon, point, T, Z] = [0x2d, 0x2b, 0x3a, 0x2e, 0x54, 0x5a] as const;

function isNanos(nanos: number): boolean {
  return Number.isInteger(nanos) && nanos > -1e9 && nanos < 1e9;
}

// Prints nanoseconds with as few decimal places as possible from three, six and nine. Prints "" for zero.
function printNanos(nanos: number): string {
  if (nanos === 0) return "";
  const digits = String(Math.abs(nanos)).padStart(9, "0");
  if (digits.endsWith("000000")) return `.${digits.slice(0, 3)}`;
  return `.${digits.endsWith("000") ? digits.slice(0, 6) : digits}`;
}

// Matches a google.protobuf.Duration in JSON, which is a number of seconds with up to nine decimal places, and the
// unit. A number of seconds in the range has at most twelve digits.
const secondsWithUnit = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$/;

// Maximum seconds in a Duration, about 10,000 years. duration.proto limits seconds and nanos separately.
const maxDurationSeconds = 315_576_000_000;

/**
 * Parses a google.protobuf.Duration from its JSON form, such as `1.5s` or `-0.000000001s`.
 *
 * @returns `undefined` if the text is not a duration, or if the duration is beyond ±315,576,000,000 seconds
 */
export function parseDuration(text: string): Duration | undefined {
  const match = secondsWithUnit.exec(text);
  if (match === null) return undefined;
  const seconds = Number(match[2]);
  if (seconds > maxDurationSeconds) return undefined;
  const nanos = Number((match[3] ?? "").padEnd(9, "0"));
  // Seconds and nanos get the same sign. A zero must not become -0.
  const negative = match[1] === "-";
  return create(DurationSchema, {
    seconds: negative ? -BigInt(seconds) : BigInt(seconds),
    nanos: negative && nanos > 0 ? -nanos : nanos,
  });
}

const goUnits: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  // Go accepts both the micro sign and the Greek letter.
  ["\u00b5s", 1_000n],
  ["\u03bcs", 1_000n],
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);

// Matches numbers with at most 19 digits before and after the point, because 2^63 has 19 digits.
const goDuration =
  /^([+-]?)((?:(?:[0-9]{1,19}(?:\.[0-9]{0,19})?|\.[0-9]{1,19})(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+|0)$/;
const goDurationPart = /([0-9]*)(?:\.([0-9]*))?([a-z\u00b5\u03bc]+)/g;
/** The longest Go duration in nanoseconds, about 292 years. */
const maxGoNanos = 2n ** 63n - 1n;

/** Parses a duration as Go's `time.ParseDuration` does, such as `13h0m0s` or `1.5h`, or returns `undefined`. */
export function parseGoDuration(text: string): Duration | undefined {
  const [, sign, parts = ""] = goDuration.exec(text) ?? [];
  if (sign === undefined) return undefined;
  let nanos = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of parts.matchAll(goDurationPart)) {
    const scale = goUnits.get(unit) ?? 0n;
    nanos += BigInt(whole) * scale + (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
    if (nanos > maxGoNanos) return undefined;
  }
  const signed = sign === "-" ? -nanos : nanos;
  return create(DurationSchema, { seconds: signed / 1_000_000_000n, nanos: Number(signed % 1_000_000_000n) });
}

/**
 * Prints a google.protobuf.Duration, as {@link parseDuration} reads it.
 *
 * @throws Error if `seconds` is beyond ±315,576,000,000, or if `nanos` has another sign or more than nine digits
 */
export function printDuration({ seconds, nanos }: Pick<Duration, "seconds" | "nanos">): string {
  const time = Number(seconds);
  if (Math.abs(time) > maxDurationSeconds)
    throw new Error(`a Duration must be between -315576000000 and 315576000000 seconds, got ${time}`);
  if (!isNanos(nanos))
    throw new Error(`the nanos of a Duration must be between -999999999 and 999999999, got ${nanos}`);
  if (time * nanos < 0)
    throw new Error(`seconds and nanos of a Duration must have the same sign, got ${time} and ${nanos}`);
  return `${time === 0 && nanos < 0 ? "-" : ""}${time}${printNanos(nanos)}s`;
}
