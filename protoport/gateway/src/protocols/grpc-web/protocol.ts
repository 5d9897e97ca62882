import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  type BodyPlan,
  concatBytes,
  type Exchange,
  type HeaderFields,
  noAnnouncedLength,
  noBytes,
  toUtf8,
} from "../../http/index.ts";
import { type Take, trailerFlag, writeEnvelope } from "../envelope/envelope.ts";
import { endTrailer, readGrpcHeader, statusOk } from "../grpc/status.ts";
import { LazyHeaders } from "../lazy-headers.ts";
import { createTarget, type Protocol } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import { type CallFormat, callFormatsOf, refusalContentType } from "../shared/content-type.ts";
import { EnvelopedWire, planEnvelope } from "../shared/enveloped-wire.ts";
import { decodeGrpcWebText, decodeTextPieces, encodeGrpcWebText, grpcWebTextBytes } from "./text.ts";

const grpcWebType = "application/grpc-web";
const textType = "application/grpc-web-text";

/** gRPC-Web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). */
export const grpcWeb: Protocol = {
  name: "grpc-web",
  hasHttpStatus: false,
  targetsOf(rpc) {
    const { grpcWeb: isServed = true } = rpc.options;
    if (!isServed) return [];
    return [grpcWebType, textType].flatMap((base) => {
      const isText = base === textType;
      const formats = callFormatsOf(base, rpc.codecs, (codec) => {
        const plan = planEnvelope(codec, rpc);
        return isText ? planText(plan) : plan;
      });
      return formats.map(([contentType, format]) => {
        const target = createTarget(grpcWeb, rpc, (exchange) => new GrpcWebWire(exchange, rpc, format, isText));
        return [contentType, target] as const;
      });
    });
  },
  handlesUnmatched({ common: { contentType } }) {
    return contentType?.toLowerCase().startsWith(grpcWebType) === true;
  },
  openError(exchange) {
    const contentType = refusalContentType(exchange.common.contentType, [textType, grpcWebType]);
    const isText = contentType.startsWith(textType);
    const header = ["content-type", contentType];
    return {
      writeError: (error) => writeResponse(exchange, header, noBytes, new LazyHeaders([]), error, isText),
    };
  },
};

function planText({ limitBytes, memory }: BodyPlan): BodyPlan {
  return { limitBytes: grpcWebTextBytes(limitBytes), memory, announcedBytes: noAnnouncedLength };
}

/** A gRPC-Web call, in binary or base64 text. Unlike in gRPC, the trailer section is at the end of the body. */
class GrpcWebWire extends EnvelopedWire {
  readonly responseTrailer: LazyHeaders = new LazyHeaders(statusOk);
  readonly #isText: boolean;

  constructor(exchange: Exchange, rpc: Rpc, format: CallFormat, isText: boolean) {
    super(exchange, rpc, format, readGrpcHeader(exchange, rpc));
    this.#isText = isText;
  }

  override read<T>(body: Uint8Array, take: Take<T>): Message | T | Promise<Message | T> {
    return super.read(this.#isText ? decodeGrpcWebText(body) : body, take);
  }

  override readParts(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> | undefined {
    return this.#isText ? undefined : super.readParts(start, rest);
  }

  protected override pieces(): AsyncIterable<Uint8Array> {
    const body = super.pieces();
    return this.#isText ? decodeTextPieces(body) : body;
  }

  override send(bytes: Uint8Array): void | Promise<void> {
    // Each piece is encoded separately, so that a client can decode the piece without waiting for the rest.
    return super.send(this.#isText ? encodeGrpcWebText(bytes) : bytes);
  }

  end(trailer: Headers, error: ConnectError | undefined): void {
    // The trailer is the response's last write, so backpressure can be ignored.
    void this.send(trailerEnvelope(trailer, error));
    this.exchange.end();
  }

  respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void {
    writeResponse(this.exchange, header, bytes, trailer, error, this.#isText);
  }
}

/** Writes a complete response: the messages' envelopes in `bytes`, then the trailer. `isText` means base64. */
function writeResponse(
  exchange: Exchange,
  header: HeaderFields,
  bytes: Uint8Array,
  trailer: Headers,
  error: ConnectError | undefined,
  isText: boolean,
): void {
  const body = concatBytes([bytes, trailerEnvelope(trailer, error)]);
  exchange.respond(200, header, isText ? encodeGrpcWebText(body) : body);
}

// The last envelope of nearly every response, which is encoded only once.
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

/** Returns a response's last envelope, which contains the trailer section. */
function trailerEnvelope(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  const fields = endTrailer(trailer, error);
  if (fields === statusOk) return statusOkEnvelope;
  let section = "";
  for (let at = 0; at < fields.length; at += 2) section += `${fields[at]}: ${fields[at + 1]}\r\n`;
  return writeEnvelope(trailerFlag, toUtf8(section));
}
