/** An item of an `Accept*` list. */
export interface AcceptItem {
  /** A media range or a coding, in lower case. */
  readonly name: string;
  /** What follows the name, such as `version=1.0.0`, in lower case; the weight is among them. */
  readonly parameters: readonly string[];
  /** From 0, which is not acceptable, to 1, which is also meant where there is none. */
  readonly weight: number;
}

// RFC 9110 §12.4.2: a weight from 0 to 1 with at most three digits of fraction.
const weightSyntax = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/** How many items of a list are read: more than there are codings, and few enough to cost nothing. */
const itemsMax = 16;

/** How many characters of a list are read: several times what browsers send, and few enough to cost nothing. */
const acceptLengthMax = 1024;

/**
 * Reads the list of an `Accept` or `Accept-Encoding` field, or of one of the RPC protocols that is like them (RFC 9110
 * §12.4.2). Items whose weight is malformed are left out.
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
 * Chooses the content coding of an answer (RFC 9110 §12.5.3): the one with the highest weight, or of equal ones the
 * first that the server lists.
 *
 * @param acceptEncoding - the value of `Accept-Encoding`, `null` when it was not sent
 * @param available - the codings that the server has, best first, with names in lower case
 * @returns `undefined` when the client accepts none of them or prefers identity
 */
export function negotiateCoding<Coding extends { readonly name: string }>(
  acceptEncoding: string | null,
  available: readonly Coding[],
): Coding | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = new Map(readAccept(acceptEncoding).map(({ name, weight }) => [withoutAlias(name), weight]));
  const [coding, weight] = heaviest(weights, available, ({ name }) => [name, "*"]);
  // Identity need not be listed to be acceptable. It is used even when refused, rather than failing the request.
  return weight >= (weights.get("identity") ?? 0) ? coding : undefined;
}

/**
 * Chooses a media type by `Accept` (RFC 9110 §12.5.1): the one with the highest weight. Of equal ones it is the first
 * that the client names, then the usual one, then the first; the usual one if the client accepts none. Parameters are
 * ignored.
 *
 * @param accept - the value of the field, `null` when it was not sent
 */
export function negotiateType<Form extends { readonly contentType: string }>(
  accept: string | null,
  { offered, usual }: { readonly offered: readonly Form[]; readonly usual: Form },
): Form {
  const weights = new Map(readAccept(accept ?? "").map(({ name, weight }) => [name, weight]));
  const [named, weight] = heaviest(weights, offered, ({ contentType }) => [contentType]);
  const [included, highest] = heaviest(weights, [usual, ...offered], mediaRangesOf);
  return (weight === highest ? named : included) ?? usual;
}

/** Returns the ranges that include a type; the most specific one counts. */
function mediaRangesOf({ contentType }: { readonly contentType: string }): readonly string[] {
  return [contentType, contentType.replace(/\/.*/, "/*"), "*/*"];
}

/** Returns the item with the highest weight, of equal ones the first; none if all have 0. */
function heaviest<Item>(
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
 * Reads the coding of a body from `Content-Encoding` (RFC 9110 §8.4).
 *
 * @returns the coding in lower case, `identity` for none; `undefined` when it is not available, when there are several
 * (no client needs two, and nesting makes decompression bombs far more effective), or when the list is too long
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

// RFC 9110 §8.4.1.3: x-gzip is gzip.
function withoutAlias(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}
