import type { Readable } from "node:stream";
import { within } from "../deadline.ts";

/** Reads as many of a connection's bytes as a parser needs. Every wait has a timeout. */
export interface ByteReader {
  /** Reads the next `length` bytes. Rejects if the peer closes the connection first. */
  readExactly(length: number, what: string): Promise<Buffer>;
  /** Reads up to and including the next `delimiter`. Rejects if the peer closes the connection first. */
  readThrough(delimiter: string, what: string): Promise<Buffer>;
  /** Reads until the peer closes or resets the connection. */
  readToEnd(what: string): Promise<Buffer>;
  /** Returns whether the peer has closed and every byte was read. */
  atEnd(): Promise<boolean>;
}

/** Creates a socket's reader. A reset counts as a close, because tests check the bytes received before it. */
export function createByteReader(socket: Readable): ByteReader {
  const chunks: Buffer[] = [];
  let available = 0;
  let ended = false;
  let wake: (() => void) | undefined;
  const end = (): void => {
    ended = true;
    wake?.();
  };
  socket.on("data", (bytes: Buffer) => {
    chunks.push(bytes);
    available += bytes.byteLength;
    wake?.();
  });
  socket.on("end", end).on("close", end).on("error", end);

  // Chunks are joined only for reads, so that a large body is not copied with each chunk.
  const joined = (): Buffer => {
    const bytes = Buffer.concat(chunks);
    chunks.splice(0, chunks.length, bytes);
    return bytes;
  };
  const take = (length: number): Buffer => {
    const bytes = joined();
    chunks.splice(0, 1, bytes.subarray(length));
    available -= length;
    return bytes.subarray(0, length);
  };
  const takeOnce = async (ready: () => number | undefined, what: string): Promise<Buffer> => {
    for (;;) {
      const length = ready();
      if (length !== undefined) return take(length);
      if (ended) throw new Error(`the peer closed before ${what}; unread: ${quote(joined())}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const through = (delimiter: string): number | undefined => {
    const at = joined().indexOf(delimiter, 0, "latin1");
    return at < 0 ? undefined : at + delimiter.length;
  };
  const moreOrEnd = "more bytes, or the end";
  return {
    readExactly: (length, what) =>
      within(
        takeOnce(() => (available >= length ? length : undefined), what),
        what,
      ),
    readThrough: (delimiter, what) =>
      within(
        takeOnce(() => through(delimiter), what),
        what,
      ),
    readToEnd: (what) =>
      within(
        takeOnce(() => (ended ? available : undefined), what),
        what,
      ),
    atEnd: async () => {
      const filled = takeOnce(() => (ended || available > 0 ? 0 : undefined), moreOrEnd);
      await within(filled, moreOrEnd);
      return ended && available === 0;
    },
  };
}

/** Maximum number of unread bytes in an error message, because the unread bytes may be megabytes. */
const maxQuotedBytes = 1000;

function quote(bytes: Buffer): string {
  const quoted = JSON.stringify(bytes.toString("latin1", 0, maxQuotedBytes));
  const left = bytes.byteLength - maxQuotedBytes;
  return left > 0 ? `${quoted} and ${left} bytes more` : quoted;
}
