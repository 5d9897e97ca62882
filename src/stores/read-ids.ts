/** The error for a line that is not an id. Its message quotes the line, for the operator, who has the file. */
export class BadLine extends Error {
  override readonly name = "BadLine";
}

// The longest line that is looked at, in characters: -9223372036854775808 has 20.
const lineMax = 64;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

// Each id has one spelling here too: no leading zero, no plus sign, no minus zero.
const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/;

// U+FEFF in UTF-8, read as Latin-1. The marks of UTF-16 differ, and no line of it is an id.
const byteOrderMark = "\u00ef\u00bb\u00bf";

/**
 * Reads text with one id per line, in batches of at most `batchMax` ids. Lines end with LF or CRLF, the last one perhaps without; empty lines are
 * skipped.
 *
 * @throws BadLine at the first line that is not a canonical int64. Earlier ids of its batch are not yielded.
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
      const plain = unfinished === "" ? plainId(chunk, start, end) : undefined;
      const id = plain ?? parseLine(unfinished + latin1(chunk, start, end), lineNumber);
      unfinished = "";
      start = end + 1;
      if (id !== undefined) ids[count++] = id;
      if (count < batchMax) continue;
      yield ids;
      ids = new BigInt64Array(batchMax);
      count = 0;
    }
    unfinished += latin1(chunk, start, chunk.length);
    // An endless line, such as in a binary file, is rejected before it fills the memory.
    if (unfinished.length > lineMax) parseLine(unfinished, lineNumber + 1);
  }
  const last = parseLine(unfinished, lineNumber + 1);
  if (last !== undefined) ids[count++] = last;
  if (count > 0) yield ids.subarray(0, count);
}

const lineFeed = 0x0a;
const digitZero = 0x30;

/** Returns where the line ends, or the bytes do. A line is too short for a search of the buffer's own. */
function lineEnd(bytes: Uint8Array, start: number): number {
  let end = start;
  while (end < bytes.length && bytes[end] !== lineFeed) end++;
  return end;
}

// An id is read as two numbers, its last nine digits and those before them. Those before are below this edge; the few
// ids of int64 at the edge, and all that is above int64, are left to the careful way.
const lowDigits = 9;
const lowRange = 1_000_000_000n;
const highEdge = Number(int64Max / lowRange);

/**
 * Returns the id of a line, in at most half of the time of {@link parseLine}; `undefined` for any line that is not just
 * digits, and for a few that are.
 */
function plainId(bytes: Uint8Array, start: number, end: number): bigint | undefined {
  if (start === end || bytes[start] === digitZero) return undefined;
  const middle = Math.max(start, end - lowDigits);
  const high = numberOf(bytes, start, middle);
  const low = numberOf(bytes, middle, end);
  if (high === undefined || low === undefined || high >= highEdge) return undefined;
  return high === 0 ? BigInt(low) : BigInt(high) * lowRange + BigInt(low);
}

/** Returns the number that these digits are, zero if there are none; `undefined` if a byte is no digit. */
function numberOf(bytes: Uint8Array, start: number, end: number): number | undefined {
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - digitZero;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number;
}

// Latin-1 has one character per byte, so lengths are bytes, and only ASCII digits look like digits.
function latin1(bytes: Uint8Array, start: number, end: number): string {
  return start === end ? "" : Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

/** Reads the id of a plant, which has one spelling; `undefined` for any other text. */
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
    throw new BadLine(`line ${lineNumber} starts with a byte order mark; save the file as UTF-8 without one`);
  }
  const shown = digits.length > lineMax ? `${digits.slice(0, lineMax)}…` : digits;
  throw new BadLine(`line ${lineNumber} is not a plant id: ${JSON.stringify(shown)}`);
}
