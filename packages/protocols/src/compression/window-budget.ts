import type { ConnectError } from "@connectrpc/connect";
import { problem } from "@plantstore/protobuf";

/** How many bytes the windows of all decoders may have in total, across all gateways that share this code. */
// 256 MiB: as much as `limits.backlogBytes` allows for clients that do not read, and half of a 512 MiB machine.
export const windowBytesMax: number = 256 * 1024 * 1024;

// Global, because memory is limited per process, and all gateways share it.
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
