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
  // Lines come in bundles: a step of an async generator costs as much as parsing several of them.
  for await (const lines of bundlesOf(text)) {
    for (const line of lines) {
      lineNumber++;
      const id = parseLine(line, lineNumber);
      if (id !== undefined) ids.push(id);
      if (ids.length < batchMax) continue;
      yield ids;
      ids = [];
    }
  }
  if (ids.length > 0) yield ids;
}

async function* bundlesOf(text: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  let unfinished = "";
  for await (const chunk of text) {
    // Latin-1 has one character per byte, so lengths are bytes, and only ASCII digits look like digits.
    const lines = (unfinished + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString("latin1")).split(
      "\n",
    );
    unfinished = lines.pop() ?? "";
    // An endless line, such as in a binary file, is rejected before it fills the memory.
    if (unfinished.length > lineMax) lines.push(unfinished);
    yield lines;
  }
  if (unfinished !== "") yield [unfinished];
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
