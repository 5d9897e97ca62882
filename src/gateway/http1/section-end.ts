/**
 * Finds the empty line that ends a section of lines: a head, or a trailer section (RFC 9112 §2.1).
 *
 * @param start - where the section begins
 * @param seen - up to where it was searched before
 * @returns where the empty line begins; "open" if it has not arrived; "broken" if a line does not end in CR LF, which a
 * recipient might take for an end (§2.2)
 */
export function findSectionEnd(bytes: Buffer, start: number, seen: number): number | "open" | "broken" {
  if (bytes[start] === cr && bytes[start + 1] === lf) return start;
  const end = bytes.indexOf(lineEnds, Math.max(start, seen - 3));
  if (end >= 0) return end + 2;
  const from = seen > start && bytes[seen - 1] === cr ? seen - 1 : Math.max(start, seen);
  return loneLineEnd.test(bytes.toString("latin1", from)) ? "broken" : "open";
}

const cr = 0x0d;
const lf = 0x0a;
const lineEnds = Buffer.from("\r\n\r\n");
// Of a pair of characters the second may still be missing.
const loneLineEnd = /(?:^|[^\r])\n|\r[^\n]/;
