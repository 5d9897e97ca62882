import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { CommonHeaderFields, HeaderFields } from "../carriers/index.ts";
import { errorWithHttpStatus } from "../rest/index.ts";
import { codingItemsMax } from "./content-coding.ts";

/** A compression that also reads bodies piece by piece. */
export interface PieceDecompression extends Compression {
  /**
   * Undoes the content coding of a body as it arrives, with back-pressure.
   *
   * @param freeBytes - bytes that any body may decode to, however small it is
   * @throws ConnectError `InvalidArgument` for bytes that are not of the coding, including bytes after its end;
   * `ResourceExhausted` for a body that decodes to more than an honest one can
   */
  decodePieces(pieces: AsyncIterable<Uint8Array>, freeBytes: number): AsyncIterable<Uint8Array>;
}

/** A compression that also reads and writes bodies piece by piece. */
export interface StreamCompression extends PieceDecompression {
  /** Opens the encoder of one body. It holds memory until its end, or until it is closed. */
  openEncoder(): PieceEncoder;
}

/** Encodes a body that is sent in pieces, so that a client can decode each piece as soon as it arrives. */
export interface PieceEncoder {
  /** Encodes a piece. Rejects once {@link close} was called. */
  write(bytes: Uint8Array): Promise<Uint8Array>;
  /** Encodes the last piece and the end. Never settles if {@link close} was called. */
  end(bytes: Uint8Array): Promise<Uint8Array>;
  /** Frees its memory before the end, for a body that will not be completed. */
  close(): void;
}

/** Returns whether a compression decodes pieces; one that the user has added takes all bytes at once. */
export function decodesPieces(compression: Compression): compression is PieceDecompression {
  return "decodePieces" in compression;
}

/** Returns whether a compression encodes pieces, which the Compression Streams of the web cannot: they never flush. */
export function encodesPieces(compression: Compression): compression is StreamCompression {
  return "openEncoder" in compression;
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
  /** How the answer is compressed; `undefined` when it is not. */
  readonly response: Compression | undefined;
  /** `Unimplemented` when the client uses an encoding that we cannot read. */
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
 * @param acceptName - the name of that field, in which a refusal lists the encodings that can be read
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
  // A client that names no accepted encoding accepts the one it sends.
  const response = accepted === null || accepted === "" ? request : firstAccepted(available, accepted);
  return { request, response, problem: undefined, acceptFields: none };
}

/** Negotiates the encodings of a gRPC or gRPC-Web call. */
export function negotiateGrpcEncodings(available: readonly Compression[], common: CommonHeaderFields): Encodings {
  return negotiateEncodings(available, common.grpcEncoding, common.grpcAcceptEncoding, "grpc-accept-encoding");
}

/** Returns the header fields of a gRPC or gRPC-Web answer: content type, and encodings if the client must know. */
export function grpcHeaderFields(contentType: HeaderFields, { response, acceptFields }: Encodings): HeaderFields {
  if (response !== undefined) return [...contentType, "grpc-encoding", response.name];
  return acceptFields.length === 0 ? contentType : [...contentType, ...acceptFields];
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
