import { type DescMessage, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { toUtf8 } from "../carriers/index.ts";
import { type ReadJsonOptions, readJson, writeJson } from "../json/index.ts";
import { createLargeBytesEncoder, type EncodePieces } from "./large-bytes.ts";
import { hasDeclaredWireTypes } from "./wire-types.ts";

/** Converts between messages and bytes, in one of the two formats. */
export interface Codec {
  /** @throws ConnectError `InvalidArgument` */
  decode(bytes: Uint8Array): Message;
  /** @throws ConnectError `Internal`, or `ResourceExhausted` over `writeMaxBytes` */
  encode(message: Message): Uint8Array;
  /** The same in pieces, one of which is the message's own bytes. Absent in formats and for messages without any. */
  readonly encodePieces: EncodePieces | undefined;
}

/** The codecs of one RPC, which decode requests and encode responses. */
export interface MethodCodecs {
  readonly binary: Codec;
  readonly json: Codec;
}

/** Creates the codecs of an RPC from Connect's options. JSON is read by the strict reader. */
export function createMethodCodecs(
  method: DescMethod,
  options: UniversalHandlerOptions,
  jsonRules: ReadJsonOptions,
): MethodCodecs {
  const { input, output } = method;
  const { binaryOptions, jsonOptions, writeMaxBytes } = options;
  const encodeLarge = createLargeBytesEncoder(output, binaryOptions);
  return {
    binary: {
      decode: (bytes) => decodeBinary(input, bytes, binaryOptions),
      encode: (message) => {
        // Many RPCs answer google.protobuf.Empty; writing nothing would cost as much as writing something.
        if (output.fields.length === 0 && message.$unknown === undefined) return nothing;
        return limited(
          serialize(() => toBinary(output, message, binaryOptions)),
          writeMaxBytes,
        );
      },
      encodePieces:
        encodeLarge &&
        ((message) =>
          limitedPieces(
            serialize(() => encodeLarge(message)),
            writeMaxBytes,
          )),
    },
    json: {
      decode: (bytes) => readJson(input, bytes, jsonRules),
      encode: (message) =>
        limited(
          serialize(() => toUtf8(writeJson(output, message, jsonOptions))),
          writeMaxBytes,
        ),
      encodePieces: undefined,
    },
  };
}

const nothing = new Uint8Array(0);

function decodeBinary(
  desc: DescMessage,
  bytes: Uint8Array,
  options: UniversalHandlerOptions["binaryOptions"],
): Message {
  try {
    const message = fromBinary(desc, bytes, options);
    if (hasDeclaredWireTypes(desc, bytes)) return message;
  } catch (error) {
    throw invalidMessage(desc, error);
  }
  throw invalidMessage(desc);
}

// A malformed message is the client's mistake; connect-node answers Internal here.
function invalidMessage(desc: DescMessage, cause?: unknown): ConnectError {
  const message = `the message is not a valid ${desc.typeName}`;
  return new ConnectError(message, Code.InvalidArgument, undefined, undefined, cause);
}

function serialize<Encoded>(write: () => Encoded): Encoded {
  try {
    return write();
  } catch (error) {
    throw new ConnectError("the response cannot be serialized", Code.Internal, undefined, undefined, error);
  }
}

function limited(bytes: Uint8Array, writeMaxBytes: number): Uint8Array {
  checkLength(bytes.byteLength, writeMaxBytes);
  return bytes;
}

function limitedPieces(pieces: ReturnType<EncodePieces>, writeMaxBytes: number): ReturnType<EncodePieces> {
  if (pieces !== undefined)
    checkLength(
      pieces.reduce((sum, { byteLength }) => sum + byteLength, 0),
      writeMaxBytes,
    );
  return pieces;
}

function checkLength(byteLength: number, writeMaxBytes: number): void {
  if (byteLength <= writeMaxBytes) return;
  const message = `message size ${byteLength} is larger than configured writeMaxBytes ${writeMaxBytes}`;
  throw new ConnectError(message, Code.ResourceExhausted);
}
