import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../../protobuf/index.ts";

/** Maximum total bytes in the windows of all decoders, across all gateways that share this code. */
// 256 MiB is half the memory of a machine with 512 MiB, and also the default of `limits.backlogBytes`.
export const windowBytesMax: number = 256 * 1024 * 1024;

// This variable is global because memory is limited per process, and all gateways share the memory.
let reservedBytes = 0;

/**
 * Reserves memory for a decoder's window, which node counts neither as heap nor as buffers.
 *
 * @returns a function that releases the memory and must be called only once
 * @throws ConnectError `ResourceExhausted` if the budget is exceeded
 */
export function reserveWindow(bytes: number): () => void {
  if (reservedBytes + bytes > windowBytesMax) throw windowBudgetError();
  reservedBytes += bytes;
  return () => {
    reservedBytes -= bytes;
  };
}

function windowBudgetError(): ConnectError {
  return problem("ERR_DECODING_BUSY", "too many br or zstd bodies are being decompressed at the same time");
}
