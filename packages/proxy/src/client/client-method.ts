import { create, type DescMethod, isMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { createBinaryReader, createBinaryWriter } from "@plantstore/gateway/internal/messages/binary";
import type { BodyMemory } from "@plantstore/gateway/exchange";
import { StableFields } from "@plantstore/http-engine/client";
import {
  type Codec,
  compressedFlag,
  type Envelope,
  type PartCodec,
  writeEnvelope,
} from "@plantstore/gateway/internal/protocols";
import type { ResponseCoding } from "./response-head.ts";
import { responseError } from "./call-status.ts";

/** Settings of all calls of a transport. */
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
  /** What receives the responses, for messages. */
  readonly receiver: "client" | "proxy";
  /** Whether code may be generated for messages. Default true. */
  readonly codegen?: boolean;
}

/** Converts the messages of one RPC to and from bytes. Its errors are reported as `Internal`. */
export interface ClientCodec extends Pick<Codec, "decode" | "envelopes"> {
  encode(init: unknown): Uint8Array;
}

/** One RPC of a transport, and the state that its calls share. */
export class ClientMethod {
  readonly desc: DescMethod;
  readonly settings: CallSettings;
  /** The first fields of each header section, including `user-agent`. */
  readonly stableFields: StableFields;
  readonly #codec: ClientCodec;
  #stableWithoutUserAgent: StableFields | undefined;

  constructor(desc: DescMethod, settings: CallSettings, codec: ClientCodec = createMessageCodec(desc, settings)) {
    this.desc = desc;
    this.settings = settings;
    this.stableFields = new StableFields([...this.#fields(), "user-agent", userAgent]);
    this.#codec = codec;
  }

  /** The same fields without `user-agent`, for calls whose caller sets it. */
  get stableWithoutUserAgent(): StableFields {
    return (this.#stableWithoutUserAgent ??= new StableFields(this.#fields()));
  }

  /** Whether messages of responses are copied to separate buffers or to shared blocks. */
  get memory(): BodyMemory {
    return this.#codec.envelopes?.memory ?? "own";
  }

  /** Opens a part of a large message; `undefined` if the codec needs complete messages. */
  get openPart(): PartCodec["open"] | undefined {
    return this.#codec.envelopes?.parts?.open;
  }

  /**
   * Encodes a message in its envelope; returns a promise if it is compressed.
   *
   * @throws ConnectError `Internal` if the message cannot be encoded, `ResourceExhausted` if it exceeds `writeMaxBytes`
   */
  envelop(init: unknown): Uint8Array | Promise<Uint8Array> {
    const { sendCompression, compressMinBytes, writeMaxBytes } = this.settings;
    const unchanged = sendCompression === undefined ? this.#codec.envelopes?.of(init) : undefined;
    if (unchanged !== undefined) return unchanged;
    const bytes = this.#serialize(init);
    if (bytes.byteLength > writeMaxBytes) {
      throw new ConnectError(`the message is larger than ${writeMaxBytes} bytes`, Code.ResourceExhausted);
    }
    if (sendCompression === undefined || bytes.byteLength < compressMinBytes) return writeEnvelope(0, bytes);
    return sendCompression.compress(bytes).then((compressed) => writeEnvelope(compressedFlag, compressed));
  }

  /**
   * Decodes the message of an envelope; returns a promise if it is compressed. Throws, or rejects with, a ConnectError.
   */
  open(envelope: Envelope, coding: ResponseCoding): Message | Promise<Message> {
    if (!envelope.compressed) {
      const { envelopes } = this.#codec;
      return envelopes === undefined ? this.#parse(envelope.bytes) : envelopes.open(envelope.withPrefix);
    }
    if (coding === undefined) {
      throw new ConnectError("a message is compressed, but the header declares no compression", Code.Internal);
    }
    return coding.decompress(envelope.bytes, this.settings.readMaxBytes).then(
      (decompressed) => this.#parse(decompressed),
      (error: unknown) => {
        throw responseError(error);
      },
    );
  }

  #serialize(init: unknown): Uint8Array {
    try {
      return this.#codec.encode(init);
    } catch (error) {
      throw new ConnectError("cannot encode the message", Code.Internal, undefined, undefined, error);
    }
  }

  #parse(bytes: Uint8Array): Message {
    try {
      return this.#codec.decode(bytes);
    } catch (error) {
      const message = `the response is not a valid ${this.desc.output.typeName}`;
      throw new ConnectError(message, Code.Internal, undefined, undefined, error);
    }
  }

  #fields(): string[] {
    const { scheme, authority, sendCompression, acceptCompression, offersCompression } = this.settings;
    const path = `/${this.desc.parent.typeName}/${this.desc.name}`;
    const target = [":method", "POST", ":scheme", scheme, ":path", path, ":authority", authority];
    // gRPC over HTTP/2 requires `te`, by which servers detect proxies that do not forward trailers.
    const type = ["te", "trailers", "content-type", "application/grpc+proto"];
    const encodingFields = sendCompression === undefined ? [] : ["grpc-encoding", sendCompression.name];
    const accepted = acceptCompression.map(({ name }) => name).join(",");
    return [...target, ...type, ...encodingFields, ...(offersCompression ? ["grpc-accept-encoding", accepted] : [])];
  }
}

function createMessageCodec({ input, output }: DescMethod, { codegen = true }: CallSettings): ClientCodec {
  const write = createBinaryWriter(input, { codegen });
  return {
    encode: (init) => write(isMessage(init, input) ? init : create(input, init as MessageInitShape<typeof input>)),
    decode: createBinaryReader(output, { codegen }),
  };
}

const userAgent = "grpc-node-plantstore-gateway";
