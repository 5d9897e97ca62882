import type { Socket } from "node:net";
import { startDeadline } from "../index.ts";

/**
 * Reads the first bytes of a connection until there are enough to judge it by.
 *
 * @param timeoutMs - milliseconds after which a connection without enough bytes is closed, as is one that ends earlier
 * @param judge - gets all that has arrived, and returns a function that goes on, called once our listeners are gone;
 * `undefined` while more bytes are needed
 */
export function readFirstBytes(
  socket: Socket,
  timeoutMs: number,
  judge: (seen: Buffer) => (() => void) | undefined,
): void {
  const giveUp = (): void => {
    stop();
    socket.destroy();
  };
  // A separate timer: a `socket.setTimeout` left behind would end the connection later in its life.
  const stopClock = startDeadline(timeoutMs, giveUp);
  const stop = (): void => {
    stopClock();
    socket.off("readable", look).off("end", giveUp).off("close", stop);
  };
  // Kept here until there are enough: bytes that are put back would make the socket readable again at once.
  let seen: Buffer = Buffer.alloc(0);
  const look = (): void => {
    const bytes: Buffer | null = socket.read();
    if (bytes === null) return;
    seen = seen.byteLength === 0 ? bytes : Buffer.concat([seen, bytes]);
    const goOn = judge(seen);
    if (goOn === undefined) return;
    stop();
    goOn();
  };
  socket.on("readable", look).on("end", giveUp).on("close", stop);
}
