import { runInTurns } from "@protoport/gateway/exchange";

/** An OpenAPI document as JSON and YAML. */
export interface SerializedDocument {
  readonly json: Uint8Array;
  readonly yaml: () => Promise<Uint8Array>;
  /** The origins of the document's servers, without this server, to which relative URLs refer. */
  readonly origins: readonly string[];
}

/** Maximum document size in bytes. 256 MiB is ten times as much as all Google APIs need. */
const maxDocumentBytes = 256 * 1024 * 1024;

/** Number of characters that are encoded in one step. A step takes about a millisecond. */
const charactersPerStep = 256 * 1024;

/**
 * Serializes a document, which is an object or JSON text, in short steps that do not block the event loop.
 *
 * @throws Error if the document is larger than {@link maxDocumentBytes}
 */
export async function serializeDocument(document: string | object): Promise<SerializedDocument> {
  if (typeof document === "object") {
    return {
      json: await runInTurns(encodePieces(jsonPieces(document))),
      yaml: () => runInTurns(encodePieces(yamlPieces(document))),
      origins: originsOf(document),
    };
  }
  const value = parseWithDigits(document);
  return {
    json: new TextEncoder().encode(document),
    yaml: () => runInTurns(encodePieces(yamlPieces(value))),
    origins: originsOf(value),
  };
}

function* encodePieces(pieces: Iterable<string>): Generator<void, Uint8Array<ArrayBuffer>> {
  const encoded: Uint8Array[] = [];
  let bytes = 0;
  let text = "";
  const flush = (): void => {
    const piece = Buffer.from(text);
    text = "";
    bytes += piece.byteLength;
    if (bytes > maxDocumentBytes) throw new Error(`the OpenAPI document is larger than ${maxDocumentBytes} bytes`);
    encoded.push(piece);
  };
  for (const piece of pieces) {
    text += piece;
    if (text.length >= charactersPerStep) flush();
    yield;
  }
  flush();
  return Buffer.concat(encoded, bytes);
}

function originsOf(document: unknown): readonly string[] {
  const { servers = [] }: { readonly servers?: readonly { readonly url: string }[] } = Object(document);
  const absolute = servers.filter(({ url }) => /^https?:/.test(url) && URL.canParse(url));
  return [...new Set(absolute.map(({ url }) => new URL(url).origin))];
}

/** A number as its JSON text, so that no digit is lost. */
class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Parses a JSON text, keeping all digits in numbers for {@link yamlPieces}. */
export function parseWithDigits(json: string): unknown {
  return JSON.parse(json, (_key: string, each: unknown, context?: { readonly source?: string }) =>
    typeof each === "number" ? new Digits(context?.source ?? String(each)) : each,
  );
}

/** Writes a JSON value as YAML, in pieces like `jsonPieces`. YAML 1.1 and 1.2 parsers read the same value. */
export function* yamlPieces(value: unknown): Generator<string> {
  let isFirst = true;
  for (const piece of memberPieces(value, "", levelsInPieces)) {
    yield isFirst ? piece.trimStart() : piece;
    isFirst = false;
  }
  yield "\n";
}

/** Yields a value as YAML. For the first `levels` nested levels, each object member is a separate piece. */
function* memberPieces(value: unknown, indent: string, levels: number): Generator<string> {
  const members = levels === 0 ? [] : jsonMembersOf(value);
  if (members.length === 0) yield yamlBlockOf(value, indent);
  for (const [key, each] of members) {
    yield `\n${indent}${yamlScalarOf(key)}:`;
    yield* memberPieces(each, `${indent}  `, levels - 1);
  }
}

/** Returns an object's members as `JSON.stringify` would write them. Other values have no members. */
function jsonMembersOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Digits) return [];
  return Object.entries(value).filter(([, each]) => each !== undefined);
}

/** Writes the value after "key:" or "-". A non-empty object or array starts on the next line. */
function yamlBlockOf(value: unknown, indent: string): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return " []";
    // As in JSON, an undefined item is null.
    return value.map((item) => `\n${indent}-${toListItem(yamlBlockOf(item ?? null, `${indent}  `), indent)}`).join("");
  }
  if (value instanceof Digits) return ` ${value.text}`;
  if (typeof value === "string") return ` ${yamlScalarOf(value)}`;
  if (typeof value !== "object" || value === null) return ` ${String(value)}`;
  const members = jsonMembersOf(value);
  if (members.length === 0) return " {}";
  return members.map(([key, each]) => `\n${indent}${yamlScalarOf(key)}:${yamlBlockOf(each, `${indent}  `)}`).join("");
}

/** Removes the line break between an item's "-" and the item's first line. */
function toListItem(block: string, indent: string): string {
  return block.replace(`\n${indent}  `, " ");
}

function yamlScalarOf(text: string): string {
  return plainScalar.test(text) && !yamlWords.test(text) ? text : JSON.stringify(text);
}

// Strings that need no quotes. They start with a letter, "$" or "_", so they are not numbers, dates or YAML indicators.
// ": " and " #" cannot occur.
const plainScalar = /^[A-Za-z_$](?:[\w.$/-]| (?=[\w$]))*$/;
// Matches words that some YAML versions read as a boolean or null.
const yamlWords = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/**
 * Number of nested levels in which each object member is a separate piece. In an OpenAPI document, a piece is then one
 * operation or one schema.
 */
const levelsInPieces = 3;

/** Yields the pieces of the text that `JSON.stringify` would return. */
export function* jsonPieces(value: unknown, levels: number = levelsInPieces): Generator<string> {
  if (typeof value !== "object" || value === null || Array.isArray(value) || levels === 0) {
    yield JSON.stringify(value);
    return;
  }
  let before = "{";
  for (const [key, each] of Object.entries(value)) {
    if (each === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonPieces(each, levels - 1);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}
