import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { startOnLoopback } from "../http/listen-on-loopback.ts";
import type { Field } from "../http/exchange.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, type Frame, frame, frameBytes, frameFlag, frameType, headersFrame, readFrames
} from "../http/http2-frames.ts";
import { encodeEnvelope } from "./envelope.ts";

export interface ScriptedConnection {
  readonly socket: Socket;
  /** The connection's index, from 0. */
  readonly index: number;
  /** Number of complete requests that the connection has received, including the current request. */
  readonly requests: number;
  send(...frames: readonly Frame[]): void;
}

export interface Script {
  /** The first frames that the server sends. The default is an empty SETTINGS frame. */
  readonly opening?: readonly Frame[] | Buffer;
  /** Whether the server acknowledges SETTINGS. Default true. */
  readonly acknowledges?: boolean;
  /** Called for each complete request. */
  readonly request?: (connection: ScriptedConnection, streamId: number) => void;
  /** Called for each frame, before `request`. */
  readonly frame?: (connection: ScriptedConnection, received: Frame) => void;
}

/** An HTTP/2 server that runs a script, on a free loopback port. Dispose of the server with `await using`. */
export interface ScriptedServer {
  readonly baseUrl: string;
  /** Number of complete requests received. */
  readonly requests: number;
  readonly connections: number;
  readonly open: number;
  /** The frames received on all connections. */
  readonly frames: readonly Frame[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a {@link ScriptedServer}. @param at - another address and port, for a second server with the same name */
export async function startScriptedServer(
  { opening, acknowledges = true, request, frame: onFrame }: Script,
  at?: { readonly host: string; readonly port: number },
): Promise<ScriptedServer> {
  const frames: Frame[] = [];
  const counts = { requests: 0, connections: 0 };
  const server = createServer((socket) => {
    const first = opening ?? [frame(frameType.settings, 0, 0)];
    socket.write(Buffer.isBuffer(first) ? first : Buffer.concat(first.map(frameBytes)));
    const index = counts.connections++;
    let requests = 0;
    const connection: ScriptedConnection = {
      socket,
      index,
      get requests() {
        return requests;
      },
      send: (...sent) => void socket.write(Buffer.concat(sent.map(frameBytes))),
    };
    const read = async (): Promise<void> => {
      while (socket.read(clientPreface.byteLength) === null) await once(socket, "readable");
      const stream = readFrames(socket);
      for (let next = await stream.readFrame(); next !== undefined; next = await stream.readFrame()) {
        frames.push(next);
        onFrame?.(connection, next);
        if (acknowledges && isSettings(next)) connection.send(frame(frameType.settings, frameFlag.ack, 0));
        const mayEnd = next.type === frameType.data || next.type === frameType.headers;
        if (!mayEnd || (next.flags & frameFlag.endStream) === 0) continue;
        requests++;
        counts.requests++;
        request?.(connection, next.streamId);
      }
    };
    // Read errors are ignored, because the script may close the connection early.
    read().catch(() => undefined);
  });
  const { baseUrl, sockets, [Symbol.asyncDispose]: close } = await startOnLoopback(server, at);
  return {
    baseUrl,
    get requests() {
      return counts.requests;
    },
    get connections() {
      return counts.connections;
    },
    get open() {
      return sockets.size;
    },
    frames,
    [Symbol.asyncDispose]: close,
  };
}

/** Returns whether a frame has SETTINGS, and does not only acknowledge them. */
export const isSettings = ({ type, flags }: Frame): boolean =>
  type === frameType.settings && (flags & frameFlag.ack) === 0;

/** A gRPC response's header. */
export const grpcHead: readonly Field[] = [
  [":status", "200"],
  ["content-type", "application/grpc+proto"],
];

/** Returns a message in an envelope. */
export const envelope = (message: Uint8Array, flags: number = 0): Buffer => encodeEnvelope(flags, message);

/** Returns a gRPC response's frames, which are a header, DATA and a trailer. */
export function grpcResponse(
  streamId: number,
  body: Uint8Array,
  trailer: readonly Field[] = [["grpc-status", "0"]],
  head: readonly Field[] = grpcHead,
): Frame[] {
  const end = headersFrame(streamId, trailer, frameFlag.endStream);
  return [headersFrame(streamId, head), dataFrame(streamId, body), end];
}
