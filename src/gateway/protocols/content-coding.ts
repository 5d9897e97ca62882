import { acceptItemsMax, readAccept } from "./accept.ts";

/**
 * Chooses the content coding of an answer (RFC 9110 §12.5.3): the one with the highest weight, or of equal ones the
 * first that the server lists.
 *
 * @param acceptEncoding - the value of `Accept-Encoding`, `null` when it was not sent
 * @param available - the codings that the server has, best first, in lower case
 * @returns `undefined` when the client accepts none of them or prefers identity
 */
export function negotiateContentCoding(
  acceptEncoding: string | null,
  available: readonly string[],
): string | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = new Map(readAccept(acceptEncoding).map(({ name, weight }) => [withoutAlias(name), weight]));
  const others = weights.get("*");
  // Identity need not be listed to be acceptable. It is used even when refused, rather than failing the request.
  let chosen: string | undefined;
  let highest = weights.get("identity") ?? 0;
  for (const coding of available) {
    const its = weights.get(coding) ?? others ?? 0;
    if (its > 0 && (its > highest || (chosen === undefined && its === highest))) {
      chosen = coding;
      highest = its;
    }
  }
  return chosen;
}

/**
 * Reads the coding of a body from `Content-Encoding` (RFC 9110 §8.4).
 *
 * @param contentEncoding - the value of the header field, `null` when it was not sent
 * @returns the coding in lower case, `identity` for none; `undefined` when it is not available, when there are several
 * (no client needs two, and nesting makes decompression bombs far more effective), or when the list is too long
 */
export function readContentCoding(contentEncoding: string | null, available: readonly string[]): string | undefined {
  if (contentEncoding === null) return "identity";
  const names = contentEncoding
    .toLowerCase()
    .split(",", acceptItemsMax + 1)
    .map((name) => name.trim());
  const [coding = "identity", second] = names.filter((name) => name !== "" && name !== "identity").map(withoutAlias);
  if (names.length > acceptItemsMax || second !== undefined) return undefined;
  return coding === "identity" || available.includes(coding) ? coding : undefined;
}

// RFC 9110 §8.4.1.3: x-gzip is gzip.
function withoutAlias(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}
