import type { Socket } from "node:net";
import { within } from "./deadline.ts";

/** Reads a socket's bytes in the portions a parser asks for; every wait has a deadline. */
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
export function createByteReader(socket: Socket): ByteReader {
  let unread: Buffer = Buffer.alloc(0);
  let ended = false;
  let wake: (() => void) | undefined;
  const end = (): void => {
    ended = true;
    wake?.();
  };
  socket.on("data", (bytes: Buffer) => {
    unread = unread.byteLength === 0 ? bytes : Buffer.concat([unread, bytes]);
    wake?.();
  });
  socket.on("end", end).on("close", end).on("error", end);

  const more = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  };
  const take = (length: number): Buffer => {
    const taken = unread.subarray(0, length);
    unread = unread.subarray(length);
    return taken;
  };
  const takeOnce = async (ready: () => number | undefined, what: string): Promise<Buffer> => {
    for (;;) {
      const length = ready();
      if (length !== undefined) return take(length);
      if (ended) throw new Error(`the peer ended before ${what}; unread: ${JSON.stringify(unread.toString("latin1"))}`);
      await more();
    }
  };
  return {
    readExactly: (length, what) =>
      within(
        takeOnce(() => (unread.byteLength >= length ? length : undefined), what),
        what,
      ),
    readThrough: (delimiter, what) =>
      within(
        takeOnce(() => {
          const at = unread.indexOf(delimiter, 0, "latin1");
          return at < 0 ? undefined : at + delimiter.length;
        }, what),
        what,
      ),
    readToEnd: (what) =>
      within(
        takeOnce(() => (ended ? unread.byteLength : undefined), what),
        what,
      ),
    atEnd: () =>
      within(
        takeOnce(() => (ended || unread.byteLength > 0 ? 0 : undefined), "more bytes, or the end").then(
          () => ended && unread.byteLength === 0,
        ),
        "more bytes, or the end",
      ),
  };
}
