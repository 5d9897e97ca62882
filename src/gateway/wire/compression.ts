import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { HeaderFields } from "./header-fields.ts";
import { errorWithHttpStatus } from "../rest/index.ts";

/** gzip (RFC 1952), as `Content-Encoding`, `Grpc-Encoding` and `Connect-Content-Encoding` name it. */
export const gzip: Compression = createCompression("gzip", promisify(zlib.gzip), promisify(zlib.gunzip));

/** Brotli (RFC 7932). */
export const brotli: Compression = createCompression(
  "br",
  promisify(zlib.brotliCompress),
  promisify(zlib.brotliDecompress),
);

/** Zstandard (RFC 8878). */
export const zstd: Compression = createCompression(
  "zstd",
  promisify(zlib.zstdCompress),
  promisify(zlib.zstdDecompress),
);

type Deflate = (bytes: Uint8Array) => Promise<Buffer>;
type Inflate = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

/**
 * A compression whose decompression stops at the limit it is given, however small the input.
 *
 * `decompress` throws `ResourceExhausted` over the limit and `InvalidArgument` for bytes that are not
 * of the format.
 */
function createCompression(name: string, deflate: Deflate, inflate: Inflate): Compression {
  return {
    name,
    compress: async (bytes) => new Uint8Array(await deflate(bytes)),
    decompress: async (bytes, readMaxBytes) => {
      // An empty message is sent empty by some clients, although no format has an empty form.
      if (bytes.byteLength === 0) return new Uint8Array(0);
      try {
        return new Uint8Array(await inflate(bytes, { maxOutputLength: readMaxBytes }));
      } catch (error) {
        if (error instanceof RangeError) throw messageTooLarge(readMaxBytes);
        throw new ConnectError(`the message is not valid ${name}`, Code.InvalidArgument);
      }
    },
  };
}

/** A message over the configured limit, before or after decompression. */
export function messageTooLarge(readMaxBytes: number): ConnectError {
  // On REST it is 413 (RFC 9110 §15.5.14), which tells it apart from a quota that is used up.
  return errorWithHttpStatus(`message is larger than ${readMaxBytes} bytes`, Code.ResourceExhausted, 413);
}

/** How the messages of one call are compressed. */
export interface Encodings {
  /** How the client compressed what it sends; `undefined` when it did not. */
  readonly request: Compression | undefined;
  /** How the client would like the answer. */
  readonly response: Compression | undefined;
  /** The client sent something we cannot read: `Unimplemented`. */
  readonly problem: ConnectError | undefined;
  /** The field of the answer that names the encodings we can read, where the client needs to be told. */
  readonly acceptFields: HeaderFields;
}

const none: HeaderFields = [];
const identity: Encodings = { request: undefined, response: undefined, problem: undefined, acceptFields: none };

/**
 * Settles the encodings of a call by the rules of gRPC's compression document, which Connect shares.
 *
 * @param sent - the value of the encoding header field
 * @param accepted - the value of the accept-encoding header field
 * @param acceptName - the name of that field, under which a refusal lists what can be read
 */
export function negotiateEncodings(
  available: readonly Compression[],
  sent: string | null,
  accepted: string | null,
  acceptName: string,
): Encodings {
  if ((sent === null || sent === "identity") && (accepted === null || accepted === "")) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const readable = available.map((compression) => compression.name).join(",");
      const message = `unknown compression "${sent}": supported encodings are ${readable}`;
      const problem = new ConnectError(message, Code.Unimplemented);
      return { request, response: undefined, problem, acceptFields: [acceptName, readable] };
    }
  }
  // A client that does not say what it accepts accepts what it sends.
  const response = accepted === null || accepted === "" ? request : firstAccepted(available, accepted);
  return { request, response, problem: undefined, acceptFields: none };
}

/** The header fields that gRPC and gRPC-Web answer with because of the encodings. */
export function grpcEncodingFields({ response, acceptFields }: Encodings): HeaderFields {
  return response === undefined ? acceptFields : ["grpc-encoding", response.name];
}

function firstAccepted(available: readonly Compression[], accepted: string): Compression | undefined {
  for (const item of accepted.split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    // RFC 9110 §12.4.2: a weight of 0 means "not acceptable".
    if (parameters.some((parameter) => /^q=0(\.0{0,3})?$/i.test(parameter))) continue;
    const found = available.find((compression) => compression.name === name.toLowerCase());
    if (found !== undefined) return found;
  }
  return undefined;
}
