/** An `Accept*` list item. */
export interface AcceptItem {
  /** A media range or a coding, in lower case. */
  readonly name: string;
  /** The parameters in lower case, such as `version=1.0.0`, including the weight. */
  readonly parameters: readonly string[];
  /** From 0, which means not acceptable, to 1, the default. */
  readonly weight: number;
}

// A weight from 0 to 1 with at most three fraction digits (RFC 9110 §12.4.2).
const weightSyntax = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/** Maximum list items that are read: more than there are codings, and few enough to be cheap. */
const itemsMax = 16;

/** Maximum list characters that are read. Several times what browsers send, and few enough to be cheap. */
const acceptLengthMax = 1024;

/**
 * Parses the list in an `Accept` or `Accept-Encoding` field (RFC 9110 §12.4.2), or in a similar RPC protocol
 * field. Omits items with a malformed weight.
 */
export function readAccept(list: string): readonly AcceptItem[] {
  const items: AcceptItem[] = [];
  for (const item of list.slice(0, acceptLengthMax).toLowerCase().split(",", itemsMax)) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q=")) ?? "q=1";
    const weight = weightSyntax.exec(q)?.[1];
    if (name !== "" && weight !== undefined) items.push({ name, parameters, weight: Number(weight) });
  }
  return items;
}

/**
 * Returns a response's content coding (RFC 9110 §12.5.3): the one with the highest weight. Among equal weights, the
 * first in `available`.
 *
 * @param acceptEncoding - the `Accept-Encoding` value, `null` if it was not sent
 * @param available - the server's codings, preferred ones first, with names in lower case
 * @returns `undefined` if the client accepts none of them or prefers identity
 */
export function negotiateCoding<Coding extends { readonly name: string }>(
  acceptEncoding: string | null,
  available: readonly Coding[],
): Coding | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = new Map(readAccept(acceptEncoding).map(({ name, weight }) => [withoutAlias(name), weight]));
  const [coding, weight] = highestWeighted(weights, available, ({ name }) => [name, "*"]);
  // Identity is acceptable even if it is not listed. If the client refuses it, it is used anyway, instead of failing
  // the request.
  return weight >= (weights.get("identity") ?? 0) ? coding : undefined;
}

/**
 * Returns the media type for an `Accept` field (RFC 9110 §12.5.1): the one with the highest weight. Among equal weights
 * it is the first that the client names, then `fallback`, then the first in `offered`. `fallback` if the client accepts
 * none. Parameters are ignored.
 *
 * @param accept - the field value, `null` if it was not sent
 */
export function negotiateType<Form extends { readonly contentType: string }>(
  accept: string | null,
  { offered, fallback }: { readonly offered: readonly Form[]; readonly fallback: Form },
): Form {
  const weights = new Map(readAccept(accept ?? "").map(({ name, weight }) => [name, weight]));
  const [named, weight] = highestWeighted(weights, offered, ({ contentType }) => [contentType]);
  const [included, highest] = highestWeighted(weights, [fallback, ...offered], mediaRangesOf);
  return (weight === highest ? named : included) ?? fallback;
}

/** Returns the ranges that include a type, the most specific one first. */
function mediaRangesOf({ contentType }: { readonly contentType: string }): readonly string[] {
  return [contentType, contentType.replace(/\/.*/, "/*"), "*/*"];
}

/** Returns the item with the highest weight. Among equal weights the first, and none if all are 0. */
function highestWeighted<Item>(
  weights: ReadonlyMap<string, number>,
  items: readonly Item[],
  rangesOf: (item: Item) => readonly string[],
): [item: Item | undefined, weight: number] {
  let chosen: Item | undefined;
  let highest = 0;
  for (const item of items) {
    const range = rangesOf(item).find((name) => weights.has(name));
    const weight = range === undefined ? 0 : (weights.get(range) ?? 0);
    if (weight <= highest) continue;
    chosen = item;
    highest = weight;
  }
  return [chosen, highest];
}

/**
 * Parses a body's coding from `Content-Encoding` (RFC 9110 §8.4).
 *
 * @returns the coding in lower case, `identity` for none, or `undefined` if it is not available, if there are several
 *   (no client needs two, and nesting makes decompression bombs far more effective), or if the list is too long
 */
export function readContentCoding(contentEncoding: string, available: readonly string[]): string | undefined {
  const names = contentEncoding
    .toLowerCase()
    .split(",", itemsMax + 1)
    .map((name) => name.trim());
  const [coding = "identity", second] = names.filter((name) => name !== "" && name !== "identity").map(withoutAlias);
  if (names.length > itemsMax || second !== undefined) return undefined;
  return coding === "identity" || available.includes(coding) ? coding : undefined;
}

// X-gzip is gzip (RFC 9110 §8.4.1.3).
function withoutAlias(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}
