/** The ids of consecutive lines. */
export interface IdBatch {
  readonly ids: readonly bigint[];
  /** Bytes of the text up to the end of this batch. */
  readonly bytes: number;
}

/** A line is no id. The message names it, for the operator who has the file. */
export class BadLine extends Error {
  override readonly name = "BadLine";
}

// Ids. A batch is a transaction: long enough to share its commit, short enough for a server beside it to delete meanwhile.
const batchMax = 10_000;

// Characters. -9223372036854775808 has 20; beyond this a line is not worth waiting for its end.
const lineMax = 64;

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

// One spelling per id, as everywhere: no leading zero, no plus sign, no minus zero.
const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/;

/**
 * Reads text with one id per line, in batches. A line ends with LF or CRLF, the last one also with
 * the text; empty lines hold no id.
 *
 * @throws BadLine at the first line that is no canonical int64. What came before it in its batch is not yielded.
 */
export async function* readIds(text: AsyncIterable<Uint8Array>): AsyncGenerator<IdBatch> {
  let ids: bigint[] = [];
  let lineNumber = 0;
  let bytes = 0;
  // Lines come in bundles: a step of an async generator costs as much as parsing several of them.
  for await (const lines of bundlesOf(text)) {
    for (const line of lines) {
      lineNumber++;
      bytes += line.length + 1;
      const id = parseLine(line, lineNumber);
      if (id !== undefined) ids.push(id);
      if (ids.length < batchMax) continue;
      yield { ids, bytes };
      ids = [];
    }
  }
  if (ids.length > 0) yield { ids, bytes };
}

async function* bundlesOf(text: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  let unfinished = "";
  for await (const chunk of text) {
    // Latin-1 has a character for each byte, so lengths are bytes, and nothing but ASCII looks like digits.
    const lines = (unfinished + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString("latin1")).split(
      "\n",
    );
    unfinished = lines.pop() ?? "";
    // A line without an end, such as a binary file, is bad before memory is full of it.
    if (unfinished.length > lineMax) lines.push(unfinished);
    yield lines;
  }
  if (unfinished !== "") yield [unfinished];
}

function parseLine(line: string, lineNumber: number): bigint | undefined {
  const digits = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (digits === "") return undefined;
  const id = canonical.test(digits) ? BigInt(digits) : undefined;
  if (id !== undefined && id >= int64Min && id <= int64Max) return id;
  const shown = digits.length > lineMax ? `${digits.slice(0, lineMax)}…` : digits;
  throw new BadLine(`line ${lineNumber} is not the id of a plant: ${JSON.stringify(shown)}`);
}
