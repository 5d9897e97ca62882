import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { CommonFields, HeaderFields } from "../exchange/index.ts";
import { errorWithHttpStatus } from "../rest/index.ts";
import { codingItemsMax } from "./content-coding.ts";

/** gzip (RFC 1952), under its name in `Content-Encoding`, `Grpc-Encoding` and `Connect-Content-Encoding`. */
export const gzip: Compression = createCompression("gzip", promisify(zlib.gzip), promisify(zlib.gunzip));

/** Brotli (RFC 7932). */
export const brotli: Compression = createCompression(
  "br",
  promisify(zlib.brotliCompress),
  promisify(zlib.brotliDecompress),
);

/** The largest window of Zstandard that is read, as the exponent of two: 8 MiB, the limit for encoders (RFC 9659 §3). */
// The window is allocated as soon as a frame announces its size: node's own limit of 128 MiB cost 2 ms for 15 bytes.
export const zstdWindowLogMax = 23;

/** Zstandard (RFC 8878), with windows of up to 8 MiB. */
export const zstd: Compression = createCompression(
  "zstd",
  promisify(zlib.zstdCompress),
  promisify(zlib.zstdDecompress),
  { params: { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLogMax } },
);

/** Bytes decompressed at a time. With node's default of 16 KiB a message of 4 MiB took twice the CPU. */
export const decodedPieceBytes: number = 64 * 1024;

type Deflate = (bytes: Uint8Array) => Promise<Buffer>;
type Inflate = (bytes: Uint8Array, options: zlib.ZstdOptions) => Promise<unknown>;

/** The result of node's functions with the option `info`, which their types do not declare. */
interface Inflated {
  readonly buffer: Buffer;
  /** `bytesWritten` counts the input that was used. */
  readonly engine: { readonly bytesWritten: number };
}

/**
 * Creates a compression whose decompression stops at its limit, however small the input.
 *
 * `decompress` throws `ResourceExhausted` above the limit, and `InvalidArgument` for bytes that are not of the format,
 * including bytes after its end.
 */
function createCompression(
  name: string,
  deflate: Deflate,
  inflate: Inflate,
  options: zlib.ZstdOptions = {},
): Compression {
  return {
    name,
    compress: async (bytes) => new Uint8Array(await deflate(bytes)),
    decompress: async (bytes, readMaxBytes) => {
      // Some clients send an empty message as no bytes, although no format has an empty form.
      if (bytes.byteLength === 0) return new Uint8Array(0);
      try {
        const all = { ...options, chunkSize: decodedPieceBytes, maxOutputLength: readMaxBytes, info: true };
        const { buffer, engine } = (await inflate(bytes, all)) as Inflated;
        if (engine.bytesWritten === bytes.byteLength) return new Uint8Array(buffer);
      } catch (error) {
        if (error instanceof RangeError) throw messageTooLarge(readMaxBytes);
      }
      throw new ConnectError(`the message is not valid ${name}`, Code.InvalidArgument);
    },
  };
}

/** Returns the error for a message over the configured limit, before or after decompression. */
export function messageTooLarge(readMaxBytes: number): ConnectError {
  // 413 on REST (RFC 9110 §15.5.14), which tells it apart from an exhausted quota.
  return errorWithHttpStatus(`message is larger than ${readMaxBytes} bytes`, Code.ResourceExhausted, 413);
}

/** How the messages of one call are compressed. */
export interface Encodings {
  /** How the client compresses its messages; `undefined` when it does not. */
  readonly request: Compression | undefined;
  /** How the client prefers the answer. */
  readonly response: Compression | undefined;
  /** Set when the client uses an encoding that we cannot read: `Unimplemented`. */
  readonly problem: ConnectError | undefined;
  /** The field that lists the encodings we can read, for answers that must tell the client. */
  readonly acceptFields: HeaderFields;
}

const none: HeaderFields = [];
const identity: Encodings = { request: undefined, response: undefined, problem: undefined, acceptFields: none };

/**
 * Negotiates the encodings of a call by the rules of gRPC's compression document, which Connect shares.
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

/** Negotiates the encodings of a gRPC or gRPC-Web call. */
export function negotiateGrpcEncodings(available: readonly Compression[], common: CommonFields): Encodings {
  return negotiateEncodings(available, common.grpcEncoding, common.grpcAcceptEncoding, "grpc-accept-encoding");
}

/** Returns the header fields that announce the encodings in answers of gRPC and gRPC-Web. */
export function grpcEncodingFields({ response, acceptFields }: Encodings): HeaderFields {
  return response === undefined ? acceptFields : ["grpc-encoding", response.name];
}

function firstAccepted(available: readonly Compression[], accepted: string): Compression | undefined {
  for (const item of accepted.split(",", codingItemsMax)) {
    const [name = "", weight = ""] = item.split(";", 2).map((part) => part.trim());
    // RFC 9110 §12.4.2: a weight of 0 means "not acceptable".
    if (/^q=0(\.0{0,3})?$/i.test(weight)) continue;
    const found = available.find((compression) => compression.name === name.toLowerCase());
    if (found !== undefined) return found;
  }
  return undefined;
}
