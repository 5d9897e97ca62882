import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { type Exchange, goneAway } from "../carriers/index.ts";
import { decodesPieces } from "./compression.ts";

/** How many messages are decompressed at once, over all gateways of this copy of the code. */
// Each may take a window of 16 MiB, and twice its length while it is put together. Node's threads serve all that they
// are given by turns, so that each would keep this until the last is done. Twice as many as there are threads by default.
const atOnceMax = 8;

/** Bytes that a message may decode to without waiting. */
const smallBytesMax = 64 * 1024;

let running = 0;
const waiting: (() => void)[] = [];

/**
 * Decompresses a message once enough of those before it are done, so that all together take little memory.
 *
 * Where the coding allows it, a small message does not wait for large ones. A compression that the user has added takes
 * no turns, because it may never be done.
 *
 * @param exchange - that of its call: nothing is done for a call that has ended meanwhile
 */
export async function decompressInTurn(
  compression: Compression,
  bytes: Uint8Array,
  readMaxBytes: number,
  exchange: Pick<Exchange, "abortReceiver">,
): Promise<Uint8Array> {
  if (!decodesPieces(compression)) return compression.decompress(bytes, readMaxBytes);
  if (running === atOnceMax && compression.stopsEarly) {
    const small = await decompressSmall(compression, bytes, readMaxBytes);
    if (small !== undefined) return small;
  }
  // Whoever is done passes its place on.
  if (running === atOnceMax) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    if (exchange.abortReceiver === undefined) throw goneAway();
    return await compression.decompress(bytes, readMaxBytes);
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/** Returns a message, or `undefined` if it is not small. */
async function decompressSmall(
  compression: Compression,
  bytes: Uint8Array,
  readMaxBytes: number,
): Promise<Uint8Array | undefined> {
  try {
    return await compression.decompress(bytes, Math.min(readMaxBytes, smallBytesMax));
  } catch (error) {
    if (ConnectError.from(error).code === Code.ResourceExhausted) return undefined;
    throw error;
  }
}
