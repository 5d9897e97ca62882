import { createServer } from "node:net";
import type { Duplex } from "node:stream";
import { type ErrorCode, type ErrorScope, type IncomingBody } from "../../../gateway/src/http/exchange/index.ts";
import { BacklogBudget } from "../../../gateway/src/engine/backlog.ts";
import { defaultHttp2Limits, type Http2Limits } from "../../../gateway/src/engine/http2/http2-limits.ts";
import { encodeBlock, encodeStatus } from "../../../gateway/src/engine/http2/hpack/encoder.ts";
import { Http2Connection } from "../../../gateway/src/engine/http2/http2-connection.ts";
import type { Http2RequestHead } from "../../../gateway/src/engine/http2/request-head.ts";
import type { Http2Stream, StreamReceiver } from "../../../gateway/src/engine/http2/http2-stream.ts";
import { type FrameConnection, openFrames } from "../http/http2-frames.ts";
import { type LoopbackServer, startOnLoopback, withServer } from "../http/listen-on-loopback.ts";

interface EngineOptions {
  /** Serves a request. The default is {@link echo}. */
  readonly serve?: (stream: Http2Stream, head: Http2RequestHead) => void;
  readonly limits?: Partial<Http2Limits>;
  /** The budget for buffered responses. By default, each connection has a separate budget. */
  readonly budget?: BacklogBudget;
  /** Gets a fault of the server. By default, a fault is thrown, so that the test fails. */
  readonly onFault?: (error: unknown) => void;
  readonly onError?: (scope: ErrorScope, code: ErrorCode) => void;
}

export type Engine = LoopbackServer & { readonly connections: ReadonlySet<Http2Connection> };

/** Starts the engine on real sockets. */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const connections = new Set<Http2Connection>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const connection = serveConnection(socket, options, () => connections.delete(connection));
    connections.add(connection);
  });
  return { ...(await startOnLoopback(server)), connections };
}

/** Starts the engine and connects to it. Dispose of both with `await using`. */
export async function openEngine(
  options: EngineOptions = {},
): Promise<FrameConnection & AsyncDisposable & { readonly engine: Engine }> {
  const engine = await startEngine(options);
  return await withServer({ engine }, () => openFrames(engine.address));
}

export function serveConnection(
  socket: Duplex,
  { serve = echo, limits = {}, budget, onFault = rethrow, onError = () => {} }: EngineOptions = {},
  onClose: () => void = () => {},
): Http2Connection {
  const all: Http2Limits = { ...defaultHttp2Limits, ...limits };
  // oxfmt-ignore
  return new Http2Connection(socket, {
    limits: all, budget: budget ?? new BacklogBudget(256 * 1024 * 1024), onStream: serve, onClose, onFault, onError,
  });
}

function rethrow(error: unknown): never {
  throw error;
}

/** The receiver callbacks that a test sets. If `onData` does not return `false`, the receiver keeps the piece. */
export interface ReceiverParts extends Partial<Omit<StreamReceiver, "body">> {
  readonly onData?: (piece: Uint8Array, last: boolean) => boolean | void;
  readonly onEnd?: () => void;
  readonly isAwaited?: boolean;
}

/** Returns a receiver that by default consumes the body and ignores all other events. */
export function receiving(stream: Http2Stream, receiver: ReceiverParts = {}): StreamReceiver {
  const { onData = (piece) => stream.consumed(piece.byteLength), onEnd = () => {}, isAwaited = false } = receiver;
  const body: IncomingBody = {
    isAwaited,
    isFull: false,
    onData: (piece, last) => {
      const isKept = onData(piece, last) !== false;
      if (last && !stream.closed) onEnd();
      return isKept;
    },
    onEnd,
  };
  return { onReset: () => {}, onWritable: () => {}, ...receiver, body };
}

export const statusBlock = (httpStatus: number): Uint8Array => encodeStatus(httpStatus);

export function answer(stream: Http2Stream, body: Uint8Array = new Uint8Array(0)): void {
  stream.respond([statusBlock(200)], body.byteLength === 0 ? undefined : body, undefined);
}

/** Reads the complete body, and then sends it back. */
export function echo(stream: Http2Stream): void {
  const pieces: Uint8Array[] = [];
  stream.receiver = receiving(stream, {
    onData: (piece) => {
      pieces.push(piece);
      stream.consumed(piece.byteLength);
    },
    onEnd: () => answer(stream, Buffer.concat(pieces)),
  });
  if (stream.remoteEnded) answer(stream);
}

/** Sends each piece back as it arrives, with backpressure. Ends with a trailer section. */
export function pipe(stream: Http2Stream): void {
  let heldBytes = 0;
  const finish = (): void => stream.end(undefined, encodeBlock(["done", "yes"]));
  stream.sendHeaders([statusBlock(200)], false);
  stream.receiver = receiving(stream, {
    onData: (piece) => {
      heldBytes += piece.byteLength;
      stream.sendData(new Uint8Array(piece));
      if (stream.queuedBytes === 0) release();
    },
    onWritable: () => release(),
    onEnd: finish,
  });
  const release = (): void => {
    stream.consumed(heldBytes);
    heldBytes = 0;
  };
  if (stream.remoteEnded) finish();
}
