import type { ConnectError } from "@connectrpc/connect";
import type { HeaderFields } from "../../carriers/index.ts";
import { headerFieldsToSend } from "../lazy-headers.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { GrpcUnary } from "./grpc-unary.ts";
import { setStatus, statusOk } from "../trailer-status.ts";

/** A streaming call of gRPC. */
export class GrpcStream extends GrpcUnary implements StreamProtocol {
  end(trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.end(headerFieldsToSend(trailer, statusOk));
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined && bytes.byteLength === 0) return this.writeError(error);
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.answer(200, header, bytes, headerFieldsToSend(trailer, statusOk));
  }
}
