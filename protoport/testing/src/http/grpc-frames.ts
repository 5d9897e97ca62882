import { encodeEnvelope } from "../gateway/envelope.ts";
import type { Field } from "./exchange.ts";
import { dataFrame, type FrameConnection, frameFlag, headersFrame } from "./http2-frames.ts";

/** A message without fields, in an envelope. */
export const emptyMessage: Buffer = encodeEnvelope(0, Buffer.alloc(0));

export function grpcHeader(procedure: string): Field[] {
  // oxfmt-ignore
  return [
    [":method", "POST"], [":path", procedure], [":scheme", "http"], [":authority", "x"],
    ["content-type", "application/grpc"], ["te", "trailers"],
  ];
}

export function sendUnaryCall(connection: FrameConnection, streamId: number, procedure: string): void {
  const body = dataFrame(streamId, emptyMessage, frameFlag.endStream);
  connection.send(headersFrame(streamId, grpcHeader(procedure)), body);
}
