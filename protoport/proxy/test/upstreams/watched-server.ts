import { create, toBinary } from "@bufbuild/protobuf";
import { HealthCheckRequestSchema } from "../../../gateway/src/protobuf/gen/grpc/health/v1/health_pb.ts";
import { dataFrame, type Frame, frameFlag, frameType, headersFrame } from "../../../testing/src/http/http2-frames.ts";
import type { GreenhouseClient } from "../../../testing/src/gateway/greenhouse-client.ts";
import { openGreenhouseClient, watered } from "../../../testing/src/gateway/greenhouse-client.ts";
// oxfmt-ignore
import { envelope, grpcHead, grpcResponse, type Script, type ScriptedConnection, type ScriptedServer,
  startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";

/** The service whose health is watched. */
export const service = "greenhouse.v1.GreenhouseService";
const watchRequest = envelope(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })));
/** A `Watch` message, whose field 1 is its status. */
export const status = (value: number): Buffer => envelope(Buffer.of(8, value));

export const serving: Buffer = status(1);
export const notServing: Buffer = status(2);

/** A server that responds to health watches and to calls. */
export interface WatchedServer extends ScriptedServer {
  /** Sends frames on all watch streams. */
  send(frames: (streamId: number) => readonly Frame[]): void;
  readonly watches: number;
  readonly calls: number;
}

/** Starts a server that responds to a watch with these frames. */
export async function startWatchedServer(
  first: (streamId: number) => readonly Frame[],
  opening?: readonly Frame[],
  at?: { readonly host: string; readonly port: number },
): Promise<WatchedServer> {
  const watches: (readonly [ScriptedConnection, number])[] = [];
  const watchStreams = new Set<string>();
  let calls = 0;
  const script: Script = {
    ...(opening && { opening }),
    frame: ({ index }, { type, streamId, payload }) => {
      if (type === frameType.data && payload.equals(watchRequest)) watchStreams.add(`${index} ${streamId}`);
    },
    request: (connection, id) => {
      if (watchStreams.has(`${connection.index} ${id}`)) {
        watches.push([connection, id]);
        connection.send(...first(id));
      } else {
        calls++;
        connection.send(...grpcResponse(id, watered));
      }
    },
  };
  return Object.defineProperties(Object.create(await startScriptedServer(script, at)), {
    watches: { get: () => watches.length },
    calls: { get: () => calls },
    send: {
      value: (frames: (streamId: number) => readonly Frame[]) => {
        for (const [connection, id] of watches) connection.send(...frames(id));
      },
    },
  });
}

/** Returns the frames of a response with these messages. */
export function reports(...messages: readonly Uint8Array[]): (streamId: number) => readonly Frame[] {
  return (id) => [headersFrame(id, grpcHead), ...messages.map((message) => dataFrame(id, message))];
}

/** Returns the frames of a response that has only a status. */
export function endsWith(code: string): (streamId: number) => readonly Frame[] {
  return (id) => [headersFrame(id, [...grpcHead, ["grpc-status", code]], frameFlag.endStream)];
}

/** Returns the frames of a watch that reports SERVING, and ends in the middle of the next message. */
export const reportsAndFails = (id: number): readonly Frame[] => [
  ...reports(serving, serving.subarray(0, 6))(id),
  headersFrame(id, [["grpc-status", "14"]], frameFlag.endStream),
];

export const clientOf = (...addresses: readonly string[]): GreenhouseClient =>
  openGreenhouseClient({ addresses, healthService: service });

/** The outcome of a call while no server is healthy. */
export const unhealthy = "Unavailable: no server is healthy";
