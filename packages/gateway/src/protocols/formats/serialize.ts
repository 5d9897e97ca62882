import { Code } from "@connectrpc/connect";
import { problem } from "../../errors/index.ts";

/**
 * Serializes a response.
 *
 * @throws ConnectError `Internal` for what `write` throws, `ResourceExhausted` for more than `writeMaxBytes`
 */
export function serialize(write: () => Uint8Array, writeMaxBytes: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = write();
  } catch (error) {
    throw problem("ERR_RESPONSE_FAILED", "the response cannot be serialized", { cause: error });
  }
  if (bytes.byteLength <= writeMaxBytes) return bytes;
  const message = `message size ${bytes.byteLength} is larger than configured writeMaxBytes ${writeMaxBytes}`;
  // As in Connect, which defines `writeMaxBytes`.
  throw problem("ERR_RESPONSE_FAILED", message, { code: Code.ResourceExhausted });
}
