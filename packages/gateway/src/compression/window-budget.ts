import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../errors/index.ts";

/** Bytes that the windows of all bodies that are being decoded may take, over all gateways of this copy of the code. */
// 256 MiB, as much as `limits.backlogBytes` lets clients that do not read hold, and half of a machine of 512 MiB.
export const windowBytesMax: number = 256 * 1024 * 1024;

// A variable of the module, because memory is limited for the process: all its gateways draw on one budget.
let takenBytes = 0;

/**
 * Takes memory for the window of a decoder, which node counts neither as heap nor as buffers.
 *
 * @returns a function that gives it back, to be called once
 * @throws ConnectError `ResourceExhausted` if not so much is left
 */
export function takeWindow(bytes: number): () => void {
  if (takenBytes + bytes > windowBytesMax) throw tooManyWindows();
  takenBytes += bytes;
  return () => {
    takenBytes -= bytes;
  };
}

function tooManyWindows(): ConnectError {
  return problem("ERR_DECODING_BUSY", "too many br or zstd bodies are being decompressed at the same time");
}
