// RFC 9110 §12.4.2: a weight from 0 to 1 with at most three digits of fraction.
const weight = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/i;

/**
 * Chooses the content coding of an answer (RFC 9110 §12.5.3): the one the client weighs highest, and of
 * equals the first that the server lists.
 *
 * @param acceptEncoding - the value of `Accept-Encoding`, `null` when it was not sent
 * @param available - the codings at hand, best first, in lower case
 * @returns the coding, or `undefined` for none: the client named none that there is, or likes identity better
 */
export function negotiateContentCoding(
  acceptEncoding: string | null,
  available: readonly string[],
): string | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = parseWeights(acceptEncoding);
  const others = weights.get("*");
  // Identity is acceptable unless refused, and needs no mention; as the last resort it is never a reason to fail.
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

function parseWeights(acceptEncoding: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const item of acceptEncoding.toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const text = parameters[0];
    const value = text === undefined ? "1" : weight.exec(text)?.[1];
    // What cannot be read is as good as not sent; x-gzip is gzip (RFC 9110 §8.4.1.3).
    if (name !== "" && value !== undefined) weights.set(name === "x-gzip" ? "gzip" : name, Number(value));
  }
  return weights;
}

/**
 * Reads `Content-Encoding`: the codings of a body in the order they were applied, so that they are undone
 * from the last to the first (RFC 9110 §8.4). `identity` is none.
 *
 * @param contentEncoding - the value of the header field, `null` when it was not sent
 * @returns the codings in lower case; `undefined` when one is not available, or when there is more than
 * one: nobody needs two, and two are how small bombs grow large
 */
export function readContentCodings(
  contentEncoding: string | null,
  available: readonly string[],
): readonly string[] | undefined {
  if (contentEncoding === null) return [];
  const names = contentEncoding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const codings = names
    .filter((name) => name !== "" && name !== "identity")
    .map((name) => (name === "x-gzip" ? "gzip" : name));
  return codings.length <= 1 && codings.every((coding) => available.includes(coding)) ? codings : undefined;
}
