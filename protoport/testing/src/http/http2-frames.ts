import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import type { Readable } from "node:stream";
import { createByteReader, type ByteReader } from "./byte-reader.ts";
import { within } from "../deadline.ts";
import type { Address, Field } from "./exchange.ts";

/** The frame types (RFC 9113 §6). */
// oxfmt-ignore
export const frameType = {
  data: 0x0, headers: 0x1, priority: 0x2, resetStream: 0x3, settings: 0x4, pushPromise: 0x5, ping: 0x6, goAway: 0x7,
  windowUpdate: 0x8, continuation: 0x9,
} as const;

/** The frame flags (RFC 9113 §6). A bit may have different meanings in different frame types. */
export const frameFlag = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** The client connection preface (RFC 9113 §3.4), which a SETTINGS frame must follow. */
export const clientPreface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** The frames that the server sends on a connection. */
interface FrameStream {
  /** Reads the next frame. Returns `undefined` if the server has closed the connection. */
  readFrame(): Promise<Frame | undefined>;
  /** Reads until a frame matches. Returns `undefined` if the connection closes first. */
  readUntil(matches: (frame: Frame) => boolean): Promise<Frame | undefined>;
  /** Reads until END_STREAM, a reset, GOAWAY with an error, or a close ends the stream. */
  readEnd(streamId: number): Promise<StreamEnd>;
}

/** A client connection over HTTP/2 on a plain socket, for frames that no client library sends. */
export interface FrameConnection extends FrameStream, Disposable {
  readonly socket: Socket;
  send(...frames: readonly Frame[]): void;
  /** Sends frames and a PING, and waits until the server has handled them. Skips what it sends before. */
  settle(...frames: readonly Frame[]): Promise<void>;
}

/** How a stream ended, and its HTTP status, or 0 without a status in HPACK's static table. */
export type StreamEnd =
  | { readonly kind: "responded"; readonly httpStatus: number }
  | { readonly kind: "reset"; readonly httpStatus: number; readonly errorCode: number }
  | { readonly kind: "go-away"; readonly httpStatus: number; readonly errorCode: number }
  | { readonly kind: "closed"; readonly httpStatus: number };

interface FrameConnectionOptions {
  /** Whether preface and SETTINGS are sent. The default is true. */
  readonly settled?: boolean;
  /** TLS options. By default, the connection has no TLS. */
  readonly tls?: ConnectionOptions;
}

/** Opens a connection and exchanges the preface and empty SETTINGS. Dispose of the connection with `using`. */
export async function openFrames(
  address: Address,
  { settled = true, tls }: FrameConnectionOptions = {},
): Promise<FrameConnection> {
  const target = { host: address.address, port: address.port, noDelay: true };
  const socket = tls === undefined ? connect(target) : connectTls({ ...target, ALPNProtocols: ["h2"], ...tls });
  const frames = readFrames(socket);
  await within(once(socket, tls === undefined ? "connect" : "secureConnect"), "a connection");
  const opening = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0)];
  if (settled) socket.write(Buffer.concat([clientPreface, ...opening.map(frameBytes)]));
  const send: FrameConnection["send"] = (...sent) => void socket.write(Buffer.concat(sent.map(frameBytes)));
  return {
    socket,
    send,
    settle: async (...sent) => {
      send(...sent, pingFrame);
      if ((await frames.readUntil(({ type }) => type === frameType.ping)) === undefined) throw new Error("closed");
    },
    ...frames,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Reads frames from an open connection. */
export function readFrames(socket: Readable): FrameStream {
  const reader = createByteReader(socket);
  const readFrame = async (): Promise<Frame | undefined> => ((await reader.atEnd()) ? undefined : nextFrame(reader));
  const readUntil: FrameStream["readUntil"] = async (matches) => {
    for (;;) {
      const next = await readFrame();
      if (next === undefined || matches(next)) return next;
    }
  };
  return { readFrame, readUntil, readEnd: (streamId) => readEnd(streamId, readUntil) };
}

/** Creates a frame. By default, the payload is empty. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Frame {
  return { type, flags, streamId, payload: Buffer.from(payload) };
}

/** A PING frame, which the server acknowledges after it has handled the frames before it. */
export const pingFrame: Frame = frame(frameType.ping, 0, 0, Buffer.alloc(8));

/** Creates a HEADERS frame with the complete header list. @param flags - in addition to END_HEADERS */
export const headersFrame = (streamId: number, header: readonly Field[], flags: number = 0): Frame =>
  frame(frameType.headers, flags | frameFlag.endHeaders, streamId, headerBlock(header));

export const dataFrame = (streamId: number, bytes: Uint8Array, flags: number = 0): Frame =>
  frame(frameType.data, flags, streamId, bytes);

/** Creates a RST_STREAM frame with an error code (RFC 9113 §7). */
export function resetFrame(streamId: number, errorCode: number): Frame {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(errorCode);
  return frame(frameType.resetStream, 0, streamId, payload);
}

/** Encodes a header list as HPACK literals without indexing or Huffman coding (RFC 7541 §6.2.2), for any bytes. */
export const headerBlock = (header: readonly Field[]): Buffer =>
  Buffer.concat(header.flatMap(([name, value]) => [Buffer.of(0), hpackString(name), hpackString(value)]));

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([hpackInteger(bytes.byteLength), bytes]);
}

// Encodes an integer with a 7-bit prefix (RFC 7541 §5.1). The eighth bit, for Huffman coding, is 0.
function hpackInteger(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

export function frameBytes({ type, flags, streamId, payload }: Frame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

async function nextFrame(reader: ByteReader): Promise<Frame | undefined> {
  const head = await reader.readExactly(9, "the head of a frame");
  const payload = await reader.readExactly(head.readUIntBE(0, 3), "the payload of a frame");
  return { type: head.readUInt8(3), flags: head.readUInt8(4), streamId: head.readUInt32BE(5) & 0x7fffffff, payload };
}

async function readEnd(streamId: number, readUntil: FrameStream["readUntil"]): Promise<StreamEnd> {
  let httpStatus = 0;
  const endsStream = (candidate: Frame): boolean => {
    if (candidate.type === frameType.goAway) return candidate.payload.readUInt32BE(4) !== 0;
    if (candidate.streamId !== streamId) return false;
    if (candidate.type === frameType.resetStream) return true;
    if (candidate.type === frameType.headers && httpStatus === 0) httpStatus = indexedStatus(candidate.payload);
    const mayEnd = candidate.type === frameType.headers || candidate.type === frameType.data;
    return mayEnd && (candidate.flags & frameFlag.endStream) !== 0;
  };
  const last = await readUntil(endsStream);
  if (last === undefined) return { kind: "closed", httpStatus };
  if (last.type === frameType.goAway) return { kind: "go-away", httpStatus, errorCode: last.payload.readUInt32BE(4) };
  if (last.type === frameType.resetStream)
    return { kind: "reset", httpStatus, errorCode: last.payload.readUInt32BE(0) };
  return { kind: "responded", httpStatus };
}

// Entries 8 to 14 in the static table are complete `:status` fields, which encoders use (RFC 7541 appendix A).
// oxfmt-ignore
const indexedStatuses: ReadonlyMap<number, number> = new Map([
  [0x88, 200], [0x89, 204], [0x8a, 206], [0x8b, 304], [0x8c, 400], [0x8d, 404], [0x8e, 500],
]);

function indexedStatus(block: Buffer): number {
  // A connection's first block may begin with a dynamic table size update (RFC 7541 §6.3).
  const first = block.find((octet) => octet >> 5 !== 1);
  return indexedStatuses.get(first ?? 0) ?? 0;
}
