import type { Readable } from "node:stream";
import { goneAway } from "../exchange/index.ts";

/**
 * Reads a request body of node's as it comes in, with back-pressure. The body is not destroyed at the end: node would
 * destroy its connection, and the answer is still to come.
 *
 * @param isCut - whether some of the body has been dropped, so that it must not be taken for complete
 */
export function readPieces(body: Readable, isCut: () => boolean): AsyncIterable<Uint8Array> {
  const pieces = body.iterator({ destroyOnReturn: false });
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const result = await pieces.next();
    if (isCut()) throw goneAway();
    return result;
  };
  const end = async (): Promise<IteratorResult<Uint8Array>> => {
    await pieces.return?.();
    return { done: true, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) };
}

/** Drops what is left of a request body as it comes. */
export function dropRest(body: Readable): void {
  // With a listener for it, node would read on only when an iterator asks for more.
  body.removeAllListeners("readable").resume();
}
