/** The error for a line that is not an id. Its message quotes the line for the operator. */
export class InvalidLineError extends Error {
  override readonly name = "InvalidLineError";
}

// The longest line that is parsed, in characters: -9223372036854775808 has 20.
const lineLengthMax = 64;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

// Each id has exactly one spelling: no leading zero, no plus sign, no minus zero.
const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/;

// U+FEFF in UTF-8, decoded as Latin-1. UTF-16 text needs no check, because none of its lines is an id.
const byteOrderMark = "\u00ef\u00bb\u00bf";

/**
 * Reads text with one id per line, in batches with at most `batchMax` ids. Lines end with LF or CRLF, which is optional
 * on the last line. Empty lines are skipped.
 *
 * @throws InvalidLineError at the first line that is not a canonical int64. Earlier ids in its batch are not yielded.
 */
export async function* readIds(text: AsyncIterable<Uint8Array>, batchMax: number): AsyncGenerator<BigInt64Array> {
  let ids = new BigInt64Array(batchMax);
  let count = 0;
  let lineNumber = 0;
  let unfinished = "";
  for await (const chunk of text) {
    let start = 0;
    for (let end = lineEnd(chunk, start); end < chunk.length; end = lineEnd(chunk, start)) {
      lineNumber++;
      const parsed = unfinished === "" ? parseDigits(chunk, start, end) : undefined;
      const id = parsed ?? parseLine(unfinished + latin1(chunk, start, end), lineNumber);
      unfinished = "";
      start = end + 1;
      if (id !== undefined) ids[count++] = id;
      if (count < batchMax) continue;
      yield ids;
      ids = new BigInt64Array(batchMax);
      count = 0;
    }
    unfinished += latin1(chunk, start, chunk.length);
    // A very long line, such as in a binary file, is rejected before it fills the memory.
    if (unfinished.length > lineLengthMax) parseLine(unfinished, lineNumber + 1);
  }
  const last = parseLine(unfinished, lineNumber + 1);
  if (last !== undefined) ids[count++] = last;
  if (count > 0) yield ids.subarray(0, count);
}

const lineFeed = 0x0a;
const digitZero = 0x30;

// Lines are too short for `indexOf` to be faster.
function lineEnd(bytes: Uint8Array, start: number): number {
  let end = start;
  while (end < bytes.length && bytes[end] !== lineFeed) end++;
  return end;
}

// An id is parsed as two numbers: its last nine digits, and the digits before them, which must be below this limit.
// parseLine handles the few int64 ids at or above this limit, and everything above int64.
const lowDigits = 9;
const lowRange = 1_000_000_000n;
const highLimit = Number(int64Max / lowRange);

/**
 * Returns a line's id, at least twice as fast as {@link parseLine}. Returns `undefined` for lines that do not consist
 * of digits only, and for a few that do.
 */
function parseDigits(bytes: Uint8Array, start: number, end: number): bigint | undefined {
  if (start === end || bytes[start] === digitZero) return undefined;
  const middle = Math.max(start, end - lowDigits);
  const high = numberOf(bytes, start, middle);
  const low = numberOf(bytes, middle, end);
  if (high === undefined || low === undefined || high >= highLimit) return undefined;
  return high === 0 ? BigInt(low) : BigInt(high) * lowRange + BigInt(low);
}

/** Parses digits as a number. Returns zero without digits, and `undefined` if a byte is not a digit. */
function numberOf(bytes: Uint8Array, start: number, end: number): number | undefined {
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - digitZero;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number;
}

// Decodes as Latin-1, which has one character per byte. Lengths are in bytes, and no other bytes become digits.
function latin1(bytes: Uint8Array, start: number, end: number): string {
  return start === end ? "" : Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

/** Parses a plant id's canonical text. Returns `undefined` for any other text. */
export function parseId(text: string): bigint | undefined {
  const id = canonical.test(text) ? BigInt(text) : undefined;
  return id !== undefined && id >= int64Min && id <= int64Max ? id : undefined;
}

function parseLine(line: string, lineNumber: number): bigint | undefined {
  const digits = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (digits === "") return undefined;
  const id = parseId(digits);
  if (id !== undefined) return id;
  if (digits.startsWith(byteOrderMark)) {
    throw new InvalidLineError(`line ${lineNumber} starts with a byte order mark; save the file as UTF-8 without one`);
  }
  const shownDigits = digits.length > lineLengthMax ? `${digits.slice(0, lineLengthMax)}…` : digits;
  throw new InvalidLineError(`line ${lineNumber} is not a plant id: ${JSON.stringify(shownDigits)}`);
}
