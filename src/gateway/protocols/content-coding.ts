// RFC 9110 §12.4.2: a weight from 0 to 1 with at most three digits of fraction.
const weight = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/i;

/** How many items of a list of codings are read: more than there are codings, and few enough to cost nothing. */
export const codingItemsMax = 16;

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
  const weights = parseWeights(acceptEncoding);
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

/** Parses the weights of an `Accept` or `Accept-Encoding` list, by name in lower case (RFC 9110 §12.4.2). */
export function parseWeights(list: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const item of list.toLowerCase().split(",", codingItemsMax)) {
    // Only a weight may follow the name.
    const [name = "", text] = item.split(";", 2).map((part) => part.trim());
    const value = text === undefined ? "1" : weight.exec(text)?.[1];
    if (name !== "" && value !== undefined) weights.set(withoutAlias(name), Number(value));
  }
  return weights;
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
    .split(",", codingItemsMax + 1)
    .map((name) => name.trim());
  const [coding = "identity", second] = names.filter((name) => name !== "" && name !== "identity").map(withoutAlias);
  if (names.length > codingItemsMax || second !== undefined) return undefined;
  return coding === "identity" || available.includes(coding) ? coding : undefined;
}

// RFC 9110 §8.4.1.3: x-gzip is gzip.
function withoutAlias(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}
