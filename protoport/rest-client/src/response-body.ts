import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CollectedBytes, noBytes } from "@protoport/gateway/exchange";

/** Maximum number of bytes in an error record. A larger record is ignored, and the HTTP status determines the error. */
const maxErrorRecordBytes = 64 * 1024;

/**
 * Yields the pieces of a response body. Connect aborts the call's signal when the call ends, which releases a body that
 * was not read completely.
 *
 * @throws ConnectError `Unavailable` if the body is incomplete
 */
export async function* readResponsePieces(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const piece = await reader.read();
      if (piece.done) return;
      yield piece.value;
    }
  } catch (error) {
    throw new ConnectError("the response is incomplete", Code.Unavailable, undefined, undefined, error);
  }
}

/**
 * Reads a response body. @throws ConnectError `ResourceExhausted` if the body exceeds the limit, `Unavailable` if the
 * body is incomplete
 */
export async function readResponseBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const bytes = new CollectedBytes(0, maxBytes);
  for await (const piece of readResponsePieces(response.body)) {
    if (Math.max(announced, bytes.byteLength + piece.byteLength) > maxBytes) {
      throw new ConnectError(`the response is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
    }
    bytes.add(piece);
  }
  return bytes.byteLength === 0 ? noBytes : bytes.bytes;
}

/** Reads an error record. Returns `undefined` if the body is not JSON, too large or incomplete. */
export async function readRecordJson(response: Response): Promise<JsonValue | undefined> {
  try {
    const bytes = await readResponseBody(response, maxErrorRecordBytes);
    return isJsonType(response.headers) ? JSON.parse(new TextDecoder().decode(bytes)) : undefined;
  } catch {
    return undefined;
  }
}

// A content type with the suffix `+json` is also JSON (RFC 6839 §3.1).
const jsonType = /^[^/;]+\/(?:[^;]*\+)?json[\t ]*(?:;|$)/i;

/** Returns whether the content type in a response header is JSON. */
export function isJsonType(header: Headers): boolean {
  return jsonType.test(header.get("content-type") ?? "application/json");
}

/** Returns the error for an unexpected content type. The error does not contain the body. */
export function unexpectedTypeError(header: Headers, expected: string): ConnectError {
  const type = header.get("content-type") ?? "no content type";
  return new ConnectError(`the response must be ${expected}, got ${type}`, Code.Unknown);
}
