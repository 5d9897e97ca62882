import type { Readable } from "node:stream";
import { within } from "../deadline.ts";

/** Reads a connection's bytes in the portions a parser asks for; every wait has a deadline. */
export interface ByteReader {
  /** The next `length` bytes. Rejects when the peer ends before that. */
  readExactly(length: number, what: string): Promise<Buffer>;
  /** Everything up to and including the next `delimiter`. Rejects when the peer ends before that. */
  readThrough(delimiter: string, what: string): Promise<Buffer>;
  /** Everything until the peer ends or resets the connection. */
  readToEnd(what: string): Promise<Buffer>;
  /** Whether the peer has ended and every byte was read. */
  atEnd(): Promise<boolean>;
}

/** Reads from `socket`. A reset counts as an end: tests look at the bytes that came before it. */
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

  // Joined only to be searched or taken from, so that a large body is not copied with each of its pieces.
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
      if (ended) throw new Error(`the peer ended before ${what}; unread: ${quote(joined())}`);
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
      await within(
        takeOnce(() => (ended || available > 0 ? 0 : undefined), moreOrEnd),
        moreOrEnd,
      );
      return ended && available === 0;
    },
  };
}

/** A screen of text at most: what is unread may be megabytes. */
const quotedBytesMax = 1000;

function quote(bytes: Buffer): string {
  const quoted = JSON.stringify(bytes.toString("latin1", 0, quotedBytesMax));
  const left = bytes.byteLength - quotedBytesMax;
  return left > 0 ? `${quoted} and ${left} bytes more` : quoted;
}
