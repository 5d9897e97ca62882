import type { Socket } from "node:net";

/**
 * Has a socket read into memory that all such sockets share, where node sets 64 KiB aside for each read: that takes 1.3
 * µs, and most of the time of a collection of young objects. Its `data` events get a view of that memory, to be used or
 * copied before they return, because the next read of any socket is written over it. `ownPiece` copies each piece.
 *
 * Node's `onread` is for sockets that connect, and no option of a server has it for those that are accepted. So this
 * sets what node's constructor of sockets sets for it. Under TLS, and where node keeps that elsewhere, nothing changes.
 */
export function readInPlace(socket: Socket): void {
  const handle: unknown = Reflect.get(socket, "_handle");
  if ("encrypted" in socket || !canReadInto(handle)) return;
  const place = (found ??= findPlace(socket));
  if (place === undefined) return;
  const { memory } = place;
  Object.assign(socket, {
    [place.memoryKey]: memory,
    // Node goes on reading unless this returns false.
    [place.callbackKey]: (bytes: number) => socket.emit("data", memory.subarray(0, bytes)),
  });
  handle.useUserBuffer(memory);
}

/** The memory that is shared, and the keys under which a socket has what it reads into, and what it calls then. */
interface Place {
  readonly memory: Buffer;
  readonly memoryKey: symbol;
  readonly callbackKey: symbol;
}

let found: Place | undefined;

function findPlace(socket: Socket): Place | undefined {
  const keys = Object.getOwnPropertySymbols(socket);
  const memoryKey = keys.find(({ description }) => description === "kBuffer");
  const callbackKey = keys.find(({ description }) => description === "kBufferCb");
  if (memoryKey === undefined || callbackKey === undefined) return undefined;
  // Only half of it is read into, because a piece that is most of its buffer is kept as it is.
  const memory = Buffer.allocUnsafeSlow(2 * readBytesMax).subarray(0, readBytesMax);
  return { memory, memoryKey, callbackKey };
}

function canReadInto(handle: unknown): handle is { useUserBuffer(memory: Uint8Array): void } {
  return typeof handle === "object" && handle !== null && "useUserBuffer" in handle;
}

/** Bytes that are read from a socket at once, as by node. */
const readBytesMax = 64 * 1024;
