import type { ConnectError } from "@connectrpc/connect";
import { problem } from "@plantstore/protobuf";

/**
 * The maximum size for the windows in all bodies that are being decoded, in bytes, across all gateways that share this
 * code.
 */
// 256 MiB: as much as `limits.backlogBytes` allows for clients that do not read, and half of a machine of 512 MiB.
export const windowBytesMax: number = 256 * 1024 * 1024;

// Global, because memory is limited per process: all its gateways share one budget.
let reservedBytes = 0;

/**
 * Reserves memory for a decoder's window, which node counts neither as heap nor as buffers.
 *
 * @returns a function that releases it, to be called once
 * @throws ConnectError `ResourceExhausted` if the budget is exceeded
 */
export function reserveWindow(bytes: number): () => void {
  if (reservedBytes + bytes > windowBytesMax) throw tooManyWindows();
  reservedBytes += bytes;
  return () => {
    reservedBytes -= bytes;
  };
}

function tooManyWindows(): ConnectError {
  return problem("ERR_DECODING_BUSY", "too many br or zstd bodies are being decompressed at the same time");
}
