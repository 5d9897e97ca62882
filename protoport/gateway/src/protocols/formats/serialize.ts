import { Code } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";

/** Serializes a response. @throws ConnectError `Internal` if `write` throws, `ResourceExhausted` above the limit */
export function serialize(write: () => Uint8Array, writeMaxBytes: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = write();
  } catch (error) {
    throw problem("ERR_RESPONSE_FAILED", "the response cannot be serialized", { cause: error });
  }
  if (bytes.byteLength <= writeMaxBytes) return bytes;
  const message = `message size ${bytes.byteLength} is larger than configured writeMaxBytes ${writeMaxBytes}`;
  // Connect, which defines `writeMaxBytes`, also uses the code ResourceExhausted.
  throw problem("ERR_RESPONSE_FAILED", message, { code: Code.ResourceExhausted });
}
