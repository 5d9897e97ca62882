import type { ImportCounts, ImportOptions, PlantDatabase } from "../contract/plant-database.ts";

/**
 * Imports plants from text with one id per line. Each batch is durable before the next batch is read.
 *
 * @param options - `onBatch` is called after each durable batch, with its number of ids and the counts so far
 * @returns the whole import's counts
 * @throws Error at the first line that is not an id. No id from the same batch is stored
 * @throws StoreOpenError when the database fails
 */
export async function importPlants(
  database: PlantDatabase,
  text: AsyncIterable<Uint8Array>,
  options: ImportOptions & { readonly onBatch?: (ids: number, counts: ImportCounts) => void } = {},
): Promise<ImportCounts> {
  await using plantImport = await database.startImport(options);
  const totals = { added: 0, present: 0, deleted: 0 };
  for await (const ids of readIds(text, plantImport.maxBatch)) {
    const counts = await plantImport.add(ids);
    totals.added += counts.added;
    totals.present += counts.present;
    totals.deleted += counts.deleted;
    options.onBatch?.(ids.length, totals);
  }
  return totals;
}

// Maximum length of a line, in characters. The longest id, -9223372036854775808, has 20 characters.
const maxLineLength = 64;

// Each id has exactly one spelling: no leading zero, no plus sign, no minus zero.
const canonical = /^(?:0|-?[1-9][0-9]{0,18})$/;

// U+FEFF in UTF-8, decoded as Latin-1. UTF-16 text needs no check, because none of its lines is an id.
const byteOrderMark = "\u00ef\u00bb\u00bf";

/**
 * Reads text with one id per line, in batches with at most `maxBatch` ids. Lines end with LF or CRLF. The last line may
 * lack its line ending. Empty lines are skipped.
 *
 * @throws Error at the first line that is not a canonical int64. No id from the same batch is yielded
 */
export async function* readIds(text: AsyncIterable<Uint8Array>, maxBatch: number): AsyncGenerator<BigInt64Array> {
  let ids = new BigInt64Array(maxBatch);
  let count = 0;
  let lineNumber = 0;
  let unfinished = "";
  for await (const { buffer, byteOffset, length } of text) {
    // Latin-1 decodes each byte separately, so a chunk may end within a UTF-8 character. Only the bytes of ASCII digits
    // are decoded to digits.
    const lines = (unfinished + Buffer.from(buffer, byteOffset, length).toString("latin1")).split("\n");
    unfinished = lines.pop() ?? "";
    for (const line of lines) {
      const id = parseLine(line, ++lineNumber);
      if (id !== undefined) ids[count++] = id;
      if (count < maxBatch) continue;
      yield ids;
      ids = new BigInt64Array(maxBatch);
      count = 0;
    }
    // A very long line, such as in a binary file, is rejected before it fills the memory.
    if (unfinished.length > maxLineLength) parseLine(unfinished, lineNumber + 1);
  }
  const last = parseLine(unfinished, lineNumber + 1);
  if (last !== undefined) ids[count++] = last;
  if (count > 0) yield ids.subarray(0, count);
}

/** Parses the canonical text of a plant id. Returns `undefined` for any other text. */
export function parseId(text: string): bigint | undefined {
  const id = canonical.test(text) ? BigInt(text) : undefined;
  return id !== undefined && BigInt.asIntN(64, id) === id ? id : undefined;
}

function parseLine(line: string, lineNumber: number): bigint | undefined {
  const digits = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (digits === "") return undefined;
  const id = parseId(digits);
  if (id !== undefined) return id;
  if (digits.startsWith(byteOrderMark))
    throw new Error(`line ${lineNumber} starts with a byte order mark; save the file as UTF-8 without one`);
  const shownDigits = digits.length > maxLineLength ? `${digits.slice(0, maxLineLength)}…` : digits;
  throw new Error(`line ${lineNumber} is not a plant id: ${JSON.stringify(shownDigits)}`);
}
