import { type BinaryWriteOptions, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { allocateBytes } from "../../exchange/index.ts";
import { ByteTarget, tooSmall } from "./byte-target.ts";
import { type CodegenOptions, mayMakeCode } from "../codegen/index.ts";
import { type MessageWriter, messageWriter } from "./message-writer.ts";

/** Bytes that are kept for the next message. */
// Most messages fit.
// No test can tell: others only take longer.
const keptBytes = 64 * 1024;

/** Bytes of a message beyond which protobuf-es writes it. */
// What is tried before is a third of this together.
const quickBytesMax = 64 * 1024 * 1024;

/** Keeps the bytes of one message for the next. */
class SpareTarget {
  #spare: ByteTarget | undefined;

  /** Takes the bytes: to read a property of the message may write another one, which then has its own. */
  take(): ByteTarget {
    const target = this.#spare ?? new ByteTarget(keptBytes);
    this.#spare = undefined;
    return target;
  }

  /** Keeps the bytes unless they are more than most messages need. */
  keep(target: ByteTarget): void {
    if (target.bytes.byteLength === keptBytes) this.#spare = target;
  }
}

const spare = new SpareTarget();

/**
 * Returns the function that writes messages of a type, as `toBinary` does: the same bytes, or the error that it throws.
 * They share no memory with the message.
 */
export function createMessageWriter(
  desc: DescMessage,
  options: (Partial<BinaryWriteOptions> & CodegenOptions) | undefined,
): (message: Message) => Uint8Array {
  // The quick writer writes unknown fields.
  if (options?.writeUnknownFields === false) return (message) => toBinary(desc, message, options);
  let writer: MessageWriter | undefined;
  return (message) => {
    if (!mayMakeCode(options)) return toBinary(desc, message, options);
    writer ??= messageWriter(desc);
    // No test can tell: protobuf-es alone takes longer.
    return writeQuickly(writer, message) ?? toBinary(desc, message, options);
  };
}

/** Writes a message, or returns `undefined` if that is left to protobuf-es. */
export function writeQuickly(writer: MessageWriter, message: Message): Uint8Array | undefined {
  let target = spare.take();
  try {
    for (;;) {
      if (isWritten(writer, message, target)) return takeBytes(writer, target);
      // No test can tell: what is written of so many bytes is the same, only later.
      if (target.bytes.byteLength >= quickBytesMax) return undefined;
      target = new ByteTarget(Math.max(4 * target.bytes.byteLength, target.wantedBytes, writer.largeBytes));
    }
  } catch {
    // Whatever a property is or throws: protobuf-es says what is wrong with it.
    return undefined;
  } finally {
    spare.keep(target);
  }
}

function takeBytes(writer: MessageWriter, { bytes, at }: ByteTarget): Uint8Array {
  if (bytes.byteLength !== keptBytes) {
    // An eighth more, so that the next large message of the type fits, too.
    writer.largeBytes = Math.ceil(at * 1.125);
    if (at > 0.75 * bytes.byteLength) return bytes.subarray(0, at);
  }
  const copy = allocateBytes(at);
  copy.set(bytes.subarray(0, at));
  return copy;
}

/** Returns whether all of a message has found its place. */
function isWritten(writer: MessageWriter, message: Message, target: ByteTarget): boolean {
  target.at = 0;
  // No test can tell: the wish of an earlier message only takes more memory than is needed.
  target.wantedBytes = 0;
  try {
    writer.write(target, message);
    return target.isWhole;
  } catch (error) {
    if (error === tooSmall) return false;
    throw error;
  }
}
