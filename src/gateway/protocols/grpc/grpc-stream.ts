import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { HeaderFields } from "../../carriers/index.ts";
import { readEnvelopedMessages, writeEnvelopedMessage } from "../envelope.ts";
import { fieldsToSend } from "../lazy-headers.ts";
import type { StreamProtocol } from "../call-protocol.ts";
import { GrpcUnary, statusOk } from "./grpc-unary.ts";
import { setStatus } from "../trailer-status.ts";

/** A streaming call of gRPC. */
export class GrpcStream extends GrpcUnary implements StreamProtocol {
  readMessages(): AsyncIterable<Message> {
    const { readMaxBytes } = this.procedure.options;
    return readEnvelopedMessages(this.exchange.streamBody(), this.codec, this.encodings.request, readMaxBytes);
  }

  encode(message: Message): Uint8Array | Promise<Uint8Array> {
    return writeEnvelopedMessage(message, this.codec, this.encodings.response, this.procedure.options);
  }

  headerToSend(header: Headers): HeaderFields {
    return fieldsToSend(header, this.headerFields);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.end(fieldsToSend(trailer, statusOk));
  }

  answer(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    if (error !== undefined && bytes.byteLength === 0) return this.writeError(error);
    if (error !== undefined) setStatus(trailer, error);
    this.exchange.answer(200, header, bytes, fieldsToSend(trailer, statusOk));
  }
}
