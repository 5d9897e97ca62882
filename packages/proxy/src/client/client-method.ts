import { create, type DescMethod, isMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { createBinaryReader, createBinaryWriter } from "@plantstore/gateway/internal/messages/binary";
import type { BodyMemory } from "@plantstore/gateway/exchange";
import { StableFields } from "@plantstore/http-engine/client";
import { type Codec, compressedFlag, type Envelope, writeEnvelope } from "@plantstore/gateway/internal/protocols";
import type { AnswerCoding } from "./answer-head.ts";
import { answerError } from "./call-status.ts";

/** What all calls of a transport have in common. */
export interface CallSettings {
  readonly scheme: string;
  readonly authority: string;
  readonly sendCompression: Compression | undefined;
  /** What can be read of answers. */
  readonly acceptCompression: readonly Compression[];
  /** Whether servers are told so, and then may compress. */
  readonly offersCompression: boolean;
  readonly compressMinBytes: number;
  readonly readMaxBytes: number;
  readonly writeMaxBytes: number;
  readonly waitsForReady: boolean;
  /** Whether code may be generated for messages. Default true. */
  readonly codegen?: boolean;
}

/** Converts the messages of one RPC to and from bytes. What it throws becomes `Internal`. */
export interface ClientCodec extends Pick<Codec, "decode" | "envelopes"> {
  encode(init: unknown): Uint8Array;
}

/** One RPC, as a transport calls it: what is the same in all its calls. */
export class ClientMethod {
  readonly desc: DescMethod;
  readonly settings: CallSettings;
  /** How the header section begins, with the name of this client and without it. */
  readonly stable: StableFields;
  readonly #codec: ClientCodec;
  #anonymous: StableFields | undefined;

  constructor(desc: DescMethod, settings: CallSettings, codec: ClientCodec = createMessageCodec(desc, settings)) {
    this.desc = desc;
    this.settings = settings;
    this.stable = new StableFields([...this.#fields(), "user-agent", userAgent]);
    this.#codec = codec;
  }

  /** How the header section begins if the caller names the program itself. */
  get anonymous(): StableFields {
    return (this.#anonymous ??= new StableFields(this.#fields()));
  }

  /** Where the bytes of responses may be. */
  get memory(): BodyMemory {
    return this.#codec.envelopes?.memory ?? "own";
  }

  /**
   * Returns a message as it is sent, in its envelope; in a promise if it is compressed.
   *
   * @throws ConnectError `Internal` for a message that cannot be encoded, `ResourceExhausted` over `writeMaxBytes`
   */
  envelop(init: unknown): Uint8Array | Promise<Uint8Array> {
    const { sendCompression, compressMinBytes, writeMaxBytes } = this.settings;
    const received = sendCompression === undefined ? this.#codec.envelopes?.of(init) : undefined;
    if (received !== undefined) return received;
    const bytes = this.#serialize(init);
    if (bytes.byteLength > writeMaxBytes) {
      throw new ConnectError(`the message is larger than ${writeMaxBytes} bytes`, Code.ResourceExhausted);
    }
    if (sendCompression === undefined || bytes.byteLength < compressMinBytes) return writeEnvelope(0, bytes);
    return sendCompression.compress(bytes).then((compressed) => writeEnvelope(compressedFlag, compressed));
  }

  /** Returns the message in an envelope; in a promise if it is compressed. Throws, or rejects with, a ConnectError. */
  open(envelope: Envelope, coding: AnswerCoding): Message | Promise<Message> {
    if (!envelope.compressed) {
      const { envelopes } = this.#codec;
      return envelopes === undefined ? this.#parse(envelope.bytes) : envelopes.open(envelope.whole);
    }
    if (coding === undefined) {
      throw new ConnectError("a message is compressed although the header says otherwise", Code.Internal);
    }
    return coding.decompress(envelope.bytes, this.settings.readMaxBytes).then(
      (decompressed) => this.#parse(decompressed),
      (error: unknown) => {
        throw answerError(error);
      },
    );
  }

  #serialize(init: unknown): Uint8Array {
    try {
      return this.#codec.encode(init);
    } catch (error) {
      throw new ConnectError("the message cannot be encoded", Code.Internal, undefined, undefined, error);
    }
  }

  #parse(bytes: Uint8Array): Message {
    try {
      return this.#codec.decode(bytes);
    } catch (error) {
      const message = `the answer is not a valid ${this.desc.output.typeName}`;
      throw new ConnectError(message, Code.Internal, undefined, undefined, error);
    }
  }

  #fields(): string[] {
    const { scheme, authority, sendCompression, acceptCompression, offersCompression } = this.settings;
    const path = `/${this.desc.parent.typeName}/${this.desc.name}`;
    const target = [":method", "POST", ":scheme", scheme, ":path", path, ":authority", authority];
    // gRPC over HTTP/2: `te` shows proxies that trailers are read.
    const type = ["te", "trailers", "content-type", "application/grpc+proto"];
    const sent = sendCompression === undefined ? [] : ["grpc-encoding", sendCompression.name];
    const accepted = acceptCompression.map(({ name }) => name).join(",");
    return [...target, ...type, ...sent, ...(offersCompression ? ["grpc-accept-encoding", accepted] : [])];
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
