import { encodeEnvelope } from "../gateway/envelope.ts";
import type { Field } from "./exchange.ts";
import { dataFrame, type FrameConnection, frameFlag, headersFrame } from "./http2-frames.ts";

/** A message without a field, in its envelope. */
export const emptyMessage: Buffer = encodeEnvelope(0, Buffer.alloc(0));

/** The header of a gRPC call over plain HTTP/2. */
export function grpcHeader(procedure: string): Field[] {
  return [
    [":method", "POST"],
    [":path", procedure],
    [":scheme", "http"],
    [":authority", "x"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ];
}

/** Sends a whole unary call on a stream. */
export function sendUnaryCall(connection: FrameConnection, streamId: number, procedure: string): void {
  connection.send(
    headersFrame(streamId, grpcHeader(procedure)),
    dataFrame(streamId, emptyMessage, frameFlag.endStream),
  );
}
