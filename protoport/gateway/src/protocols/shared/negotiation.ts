import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { HeaderFields } from "../../http/index.ts";
import { problem, quoteValue } from "../../protobuf/index.ts";

/** An `Accept*` list item. */
export interface AcceptItem {
  /** A media range or a coding, in lower case. */
  readonly name: string;
  /** The item's parameters and weight in lower case, such as `version=1.0.0`. */
  readonly parameters: readonly string[];
  /** The weight from 0 to 1. The weight 0 means that the item is not acceptable. Default 1. */
  readonly weight: number;
}

// Matches a weight from 0 to 1 with at most three fraction digits (RFC 9110 §12.4.2).
const weightSyntax = /^q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/** Maximum list items that are read, which is more than the number of codings. */
const maxItems = 16;

/** Maximum number of list characters that are read. Browsers send several times fewer characters. */
const maxAcceptLength = 1024;

/**
 * Parses the list in an `Accept` or `Accept-Encoding` field (RFC 9110 §12.4.2), or in a similar RPC protocol
 * field. Omits items with a malformed weight.
 */
export function readAccept(list: string): readonly AcceptItem[] {
  const items: AcceptItem[] = [];
  for (const item of list.slice(0, maxAcceptLength).toLowerCase().split(",", maxItems)) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q=")) ?? "q=1";
    const weight = weightSyntax.exec(q)?.[1];
    if (name !== "" && weight !== undefined) items.push({ name, parameters, weight: Number(weight) });
  }
  return items;
}

/**
 * Returns the content coding with the highest weight for a response (RFC 9110 §12.5.3). The order in `available`
 * decides between equal weights.
 *
 * @param acceptEncoding - the value of `Accept-Encoding`, or `null` if the client sent none
 * @param available - the server's codings, preferred codings first, with names in lower case
 * @returns `undefined` if the client accepts no available coding, or prefers identity
 */
export function negotiateCoding<Coding extends { readonly name: string }>(
  acceptEncoding: string | null,
  available: readonly Coding[],
): Coding | undefined {
  if (acceptEncoding === null || acceptEncoding === "") return undefined;
  const weights = new Map(readAccept(acceptEncoding).map(({ name, weight }) => [withoutAlias(name), weight]));
  const [coding, weight] = highestWeighted(weights, available, ({ name }) => [name, "*"]);
  // Identity is acceptable even if the client does not list it. A client that refuses identity gets an unencoded
  // response instead of an error.
  return weight >= (weights.get("identity") ?? 0) ? coding : undefined;
}

/**
 * Returns the fields of a response whose coding depends on `Accept-Encoding` (RFC 9110 §12.5.5). With a coding, a strong
 * ETag becomes weak, because it identifies the uncompressed representation (§8.8.3.3).
 */
export function varyByCoding(fields: HeaderFields, coding: object | undefined): HeaderFields {
  const varying = [...fields, "vary", "accept-encoding"];
  if (coding === undefined) return varying;
  return varying.map((value, at) => (varying[at - 1] === "etag" && value.startsWith('"') ? `W/${value}` : value));
}

/**
 * Returns the media type with the highest weight in an `Accept` field (RFC 9110 §12.5.1). Between equal weights, a type
 * that the client names precedes `fallback`, and `fallback` precedes the types in `offered`. Returns `fallback` if the
 * client accepts no type. Ignores parameters.
 *
 * @param accept - the value of `Accept`, or `null` if the client sent none
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

/** Returns the media ranges that include a media type, the most specific range first. */
function mediaRangesOf({ contentType }: { readonly contentType: string }): readonly string[] {
  return [contentType, contentType.replace(/\/.*/, "/*"), "*/*"];
}

/** Returns the first item with the highest weight, or no item if all weights are 0. */
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
 * @returns the coding in lower case, `identity` without a coding, or `undefined` for an unavailable coding, several
 * codings or too many items. No client needs two codings, and nesting makes decompression bombs far more effective
 */
export function readContentCoding(contentEncoding: string, available: readonly string[]): string | undefined {
  const names = contentEncoding
    .toLowerCase()
    .split(",", maxItems + 1)
    .map((name) => name.trim());
  const [coding = "identity", second] = names.filter((name) => name !== "" && name !== "identity").map(withoutAlias);
  if (names.length > maxItems || second !== undefined) return undefined;
  return coding === "identity" || available.includes(coding) ? coding : undefined;
}

// The coding x-gzip is an alias for gzip (RFC 9110 §8.4.1.3).
function withoutAlias(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}

/** The compressions for one call's messages. */
export interface MessageEncodings {
  /** The request messages' compression, or `undefined` for none. */
  readonly request: Compression | undefined;
  /** The response messages' compression, or `undefined` for none. */
  readonly response: Compression | undefined;
  /** The error `Unimplemented` if the client uses an unsupported encoding. */
  readonly problem: ConnectError | undefined;
  /** The field that lists the supported encodings, or empty if the client's encoding is supported. */
  readonly acceptEncodingFields: HeaderFields;
}

const noFields: HeaderFields = [];
const identity: MessageEncodings = {
  request: undefined,
  response: undefined,
  problem: undefined,
  acceptEncodingFields: noFields,
};

/**
 * Negotiates a call's encodings as defined in the gRPC compression document. Connect follows the same rules.
 *
 * @param sent - the value of the header field with the request messages' encoding
 * @param accepted - the value of the header field with the encodings that the client accepts
 * @param acceptName - the name of the accept field, in which a refusal lists the supported encodings
 */
export function negotiateEncodings(
  available: readonly Compression[],
  sent: string | null,
  accepted: string | null,
  acceptName: string,
): MessageEncodings {
  if (sent === null && accepted === null) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const supported = available.map((compression) => compression.name).join(",");
      const message = `unknown compression ${quoteValue(sent)}: supported encodings are ${supported}`;
      // The gRPC compression document and the Connect protocol require the code Unimplemented.
      const unsupported = problem("ERR_ENCODING_UNSUPPORTED", message, {
        code: Code.Unimplemented,
        option: "acceptCompression",
      });
      return { request, response: undefined, problem: unsupported, acceptEncodingFields: [acceptName, supported] };
    }
  }
  // A client that lists no accepted encodings accepts the encoding that it sends.
  const response = accepted === null || accepted === "" ? request : lastChoice.preferred(available, accepted);
  return { request, response, problem: undefined, acceptEncodingFields: noFields };
}

/** Caches the last choice, because gRPC clients send the same list with every call. */
class LastChoice {
  #available: readonly Compression[] | undefined;
  #accepted: string | undefined;
  #responseCompression: Compression | undefined;

  /** Returns the encoding with the highest weight. The client's list decides between equal weights. */
  preferred(available: readonly Compression[], accepted: string): Compression | undefined {
    if (this.#available === available && this.#accepted === accepted) return this.#responseCompression;
    const listed = readAccept(accepted).flatMap(({ name }) =>
      available.filter((compression) => compression.name === name),
    );
    this.#responseCompression = negotiateCoding(accepted, [...listed, ...available]);
    this.#available = available;
    this.#accepted = accepted;
    return this.#responseCompression;
  }
}

const lastChoice = new LastChoice();
