import { runInTurns } from "@protoport/gateway/exchange";
import { jsonPieces } from "./json-pieces.ts";
import { parseWithDigits, yamlPieces } from "./yaml-text.ts";

/** An OpenAPI document as JSON and YAML. */
export interface SerializedDocument {
  readonly json: Uint8Array;
  readonly yaml: () => Promise<Uint8Array>;
  /** The origins of the document's servers, without this server, to which relative URLs refer. */
  readonly origins: readonly string[];
}

/** Maximum document size in bytes. 256 MiB is ten times as much as all Google APIs need. */
const documentMaxBytes = 256 * 1024 * 1024;

/** Number of characters that are encoded in one step. A step takes about a millisecond. */
const charactersPerStep = 256 * 1024;

/**
 * Serializes a document, which is an object or JSON text, in short steps that do not block the event loop.
 *
 * @throws Error if the document is larger than {@link documentMaxBytes}
 */
export async function serializeDocument(document: string | object): Promise<SerializedDocument> {
  if (typeof document === "object") {
    return {
      json: await runInTurns(encode(jsonPieces(document))),
      yaml: () => runInTurns(encode(yamlPieces(document))),
      origins: originsOf(document),
    };
  }
  const value = parseWithDigits(document);
  return {
    json: new TextEncoder().encode(document),
    yaml: () => runInTurns(encode(yamlPieces(value))),
    origins: originsOf(value),
  };
}

function* encode(pieces: Iterable<string>): Generator<void, Uint8Array<ArrayBuffer>> {
  const encoded: Uint8Array[] = [];
  let bytes = 0;
  let text = "";
  const flush = (): void => {
    const piece = Buffer.from(text);
    text = "";
    bytes += piece.byteLength;
    if (bytes > documentMaxBytes) throw new Error(`the OpenAPI document is larger than ${documentMaxBytes} bytes`);
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
