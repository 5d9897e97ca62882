import type { Compression } from "@connectrpc/connect/protocol";
import { type Exchange, goneAway } from "../carriers/index.ts";
import { decodesPieces } from "./compression.ts";

/** How many messages are decompressed at once, over all gateways of this copy of the code. */
// Each may take a window of 16 MiB, and twice its length while it is put together. Node's threads serve all that they
// are given by turns, so that each would keep this until the last is done. Twice as many as there are threads by default.
const atOnceMax = 8;

let running = 0;
const waiting: (() => void)[] = [];

/**
 * Decompresses a message once enough of those before it are done, so that all together take little memory.
 *
 * A compression that the user has added takes no turns, because it may never be done.
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
