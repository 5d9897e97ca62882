/** The error for a line that is not an id. Its message quotes the line, for the operator, who has the file. */
export class BadLine extends Error {
  override readonly name = "BadLine";
}

// The most ids in a batch. A batch is one transaction: long enough to share its commit, and short enough for a server
// to keep deleting meanwhile.
const batchMax = 10_000;

// The longest line that is looked at, in characters: -9223372036854775808 has 20.
const lineMax = 64;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

// Each id has one spelling here too: no leading zero, no plus sign, no minus zero.
const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/;

// U+FEFF in UTF-8, read as Latin-1. The marks of UTF-16 differ, and no line of it is an id.
const byteOrderMark = "\u00ef\u00bb\u00bf";

/**
 * Reads text with one id per line, in batches. Lines end with LF or CRLF, the last one perhaps without; empty lines are
 * skipped.
 *
 * @throws BadLine at the first line that is not a canonical int64. Earlier ids of its batch are not yielded.
 */
export async function* readIds(text: AsyncIterable<Uint8Array>): AsyncGenerator<readonly bigint[]> {
  let ids: bigint[] = [];
  let lineNumber = 0;
  let unfinished = "";
  for await (const chunk of text) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      lineNumber++;
      const plain = unfinished === "" ? plainId(chunk, start, end) : undefined;
      const id = plain ?? parseLine(unfinished + latin1(chunk, start, end), lineNumber);
      unfinished = "";
      start = end + 1;
      if (id !== undefined) ids.push(id);
      if (ids.length < batchMax) continue;
      yield ids;
      ids = [];
    }
    unfinished += latin1(chunk, start, chunk.length);
    // An endless line, such as in a binary file, is rejected before it fills the memory.
    if (unfinished.length > lineMax) parseLine(unfinished, lineNumber + 1);
  }
  const last = parseLine(unfinished, lineNumber + 1);
  if (last !== undefined) ids.push(last);
  if (ids.length > 0) yield ids;
}

const lineFeed = 0x0a;
const digitZero = 0x30;

// Every number of so many digits is exact in a double.
const plainDigitsMax = 15;

/** Returns the id of a line that is nothing but digits, in a fifth of the time; `undefined` for any other line. */
function plainId(bytes: Uint8Array, start: number, end: number): bigint | undefined {
  const isPlain = end > start && end - start <= plainDigitsMax && (bytes[start] !== digitZero || end - start === 1);
  if (!isPlain) return undefined;
  let id = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - digitZero;
    if (digit < 0 || digit > 9) return undefined;
    id = id * 10 + digit;
  }
  return BigInt(id);
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
    throw new BadLine(`line ${lineNumber} begins with a byte order mark; save the file as UTF-8 without one`);
  }
  const shown = digits.length > lineMax ? `${digits.slice(0, lineMax)}…` : digits;
  throw new BadLine(`line ${lineNumber} is not the id of a plant: ${JSON.stringify(shown)}`);
}
