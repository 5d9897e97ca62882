import { create, type DescMethod, isMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { type BodyMemory, readHeaderField } from "@protoport/gateway/exchange";
import { compressedFlag, type Envelope, toEnvelope, writeEnvelope } from "@protoport/gateway/forward";
import { type ResponseSection, StableFields } from "@protoport/gateway/http2-client";
import { createBinaryReader, createBinaryWriter } from "@protoport/gateway/messages";
import { procedureOf } from "@protoport/gateway/rest";
import { codeOfHttpStatus, responseError } from "./call-status.ts";

/** Settings that all calls on a transport share. */
export interface CallSettings {
  readonly scheme: string;
  readonly authority: string;
  readonly sendCompression: Compression | undefined;
  /** Compressions that responses may use. */
  readonly acceptCompression: readonly Compression[];
  /** Whether requests list {@link acceptCompression} in `grpc-accept-encoding`. */
  readonly offersCompression: boolean;
  readonly compressMinBytes: number;
  readonly readMaxBytes: number;
  readonly writeMaxBytes: number;
  readonly waitsForReady: boolean;
  /** The name in error messages for the receiver of responses. */
  readonly receiver: "client" | "proxy";
  /** Whether code may be generated for messages. Default true. */
  readonly codegen?: boolean;
}

/** The state that all calls to one RPC share. Responses have messages of type `T`. */
export abstract class ClientMethod<T> {
  readonly desc: DescMethod;
  readonly settings: CallSettings;
  /** The header fields that all calls send unchanged, including the default `user-agent`. */
  readonly stableFields: StableFields;
  #stableWithoutUserAgent: StableFields | undefined;

  constructor(desc: DescMethod, settings: CallSettings) {
    this.desc = desc;
    this.settings = settings;
    this.stableFields = new StableFields([...this.#fields(), "user-agent", userAgent]);
  }

  /** {@link stableFields} without `user-agent`, for calls whose caller sets `user-agent`. */
  get stableWithoutUserAgent(): StableFields {
    return (this.#stableWithoutUserAgent ??= new StableFields(this.#fields()));
  }

  /** Whether response messages are copied to separate buffers or to shared blocks. */
  get memory(): BodyMemory {
    return "own";
  }

  /** Converts one part of a large message. Undefined if the RPC requires complete messages. */
  get openPart(): ((part: Uint8Array) => T) | undefined {
    return undefined;
  }

  /** Returns a request message in its envelope, or a promise if the message is compressed. Throws a ConnectError. */
  abstract envelop(message: unknown): Uint8Array | Promise<Uint8Array>;

  /** Converts an uncompressed response message. Throws a ConnectError. */
  protected abstract read(envelope: Envelope): T;

  /** Converts a response message. Returns a promise if compressed. Throws, or rejects with, a ConnectError. */
  open(envelope: Envelope, coding: ResponseCoding): T | Promise<T> {
    if (!envelope.compressed) return this.read(envelope);
    if (coding === undefined) {
      throw new ConnectError("a message is compressed, but the header declares no compression", Code.Internal);
    }
    return coding.decompress(envelope.bytes, this.settings.readMaxBytes).then(
      (decompressed) => this.read(toEnvelope(decompressed)),
      (error: unknown) => {
        throw responseError(error);
      },
    );
  }

  #fields(): string[] {
    const { scheme, authority, sendCompression, acceptCompression, offersCompression } = this.settings;
    const path = procedureOf(this.desc);
    const target = [":method", "POST", ":scheme", scheme, ":path", path, ":authority", authority];
    // gRPC over HTTP/2 requires `te`. Servers use the field to detect proxies that do not forward trailers.
    const type = ["te", "trailers", "content-type", "application/grpc+proto"];
    const encodingFields = sendCompression === undefined ? [] : ["grpc-encoding", sendCompression.name];
    const accepted = acceptCompression.map(({ name }) => name).join(",");
    return [...target, ...type, ...encodingFields, ...(offersCompression ? ["grpc-accept-encoding", accepted] : [])];
  }
}

/** Returns the error for a request message that cannot be encoded. */
export function messageEncodingError(cause: unknown): ConnectError {
  return new ConnectError("cannot encode the message", Code.Internal, undefined, undefined, cause);
}

/** One RPC on a transport. */
export class MessageMethod extends ClientMethod<Message> {
  readonly #write: ReturnType<typeof createBinaryWriter>;
  readonly #read: ReturnType<typeof createBinaryReader>;

  constructor(desc: DescMethod, settings: CallSettings) {
    const { codegen = true } = settings;
    super(desc, settings);
    this.#write = createBinaryWriter(desc.input, { codegen });
    this.#read = createBinaryReader(desc.output, { codegen });
  }

  /** @throws ConnectError `Internal` if encoding fails, `ResourceExhausted` if the message exceeds `writeMaxBytes` */
  envelop(init: unknown): Uint8Array | Promise<Uint8Array> {
    const { sendCompression, compressMinBytes, writeMaxBytes } = this.settings;
    const bytes = this.#serialize(init);
    if (bytes.byteLength > writeMaxBytes) {
      throw new ConnectError(`the message is larger than ${writeMaxBytes} bytes`, Code.ResourceExhausted);
    }
    if (sendCompression === undefined || bytes.byteLength < compressMinBytes) return writeEnvelope(0, bytes);
    return sendCompression.compress(bytes).then((compressed) => writeEnvelope(compressedFlag, compressed));
  }

  #serialize(init: unknown): Uint8Array {
    const { input } = this.desc;
    try {
      return this.#write(isMessage(init, input) ? init : create(input, init as MessageInitShape<typeof input>));
    } catch (error) {
      throw messageEncodingError(error);
    }
  }

  protected read({ bytes }: Envelope): Message {
    try {
      return this.#read(bytes);
    } catch (error) {
      const message = `the response is not a valid ${this.desc.output.typeName}`;
      throw new ConnectError(message, Code.Internal, undefined, undefined, error);
    }
  }
}

const userAgent = "grpc-node-protoport";

/** The compression for response messages, or `undefined` if messages are not compressed. */
export type ResponseCoding = Compression | undefined;

/**
 * Reads a response's header section.
 *
 * @returns the messages' compression, or an error if the response is not gRPC. The error never contains header values
 */
export function readResponseHead(
  { fields, httpStatus }: ResponseSection,
  accepted: readonly Compression[],
): ResponseCoding | ConnectError {
  const contentType = readHeaderField(fields, "content-type") ?? "";
  const isGrpc = grpcType.test(contentType);
  // The mapping from HTTP status codes applies only to responses without a grpc-status.
  if (httpStatus !== 200 && !(isGrpc && readHeaderField(fields, "grpc-status") !== null)) {
    return new ConnectError(`HTTP ${httpStatus}`, codeOfHttpStatus(httpStatus));
  }
  if (!isGrpc) {
    const isOtherFormat = /^application\/grpc\b/i.test(contentType);
    return new ConnectError("the content type is not application/grpc", isOtherFormat ? Code.Internal : Code.Unknown);
  }
  const name = readHeaderField(fields, "grpc-encoding")?.toLowerCase() ?? "identity";
  if (name === "identity") return undefined;
  const coding = accepted.find((compression) => compression.name === name);
  return coding ?? new ConnectError("the grpc-encoding of the response is not supported", Code.Internal);
}

// gRPC over HTTP/2, "Content-Type". Media type parameters are ignored.
const grpcType = /^application\/grpc(?:\+proto)?\s*(?:;|$)/i;
