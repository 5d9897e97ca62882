import { type BinaryWriteOptions, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { allocateBytes } from "../../../http/index.ts";
import { ByteTarget, bufferTooSmall } from "./byte-target.ts";
import { type CodegenOptions, canCompile } from "../codegen/index.ts";
import { type MessageWriter, messageWriter } from "./message-writer.ts";

/** Size in bytes of the buffer that is kept for the next message. Most messages fit into this buffer. */
// equivalent mutant: with another buffer size, writing only takes longer.
const keptBytes = 64 * 1024;

/** Buffer size in bytes after which the fast writer gives up and protobuf-es writes the message. */
const fastBytesMax = 64 * 1024 * 1024;

/** Keeps one buffer for the next message. */
class ReusableTarget {
  #keptTarget: ByteTarget | undefined;

  /** Returns the kept buffer, or a new buffer if a message is written inside a getter of another message. */
  take(): ByteTarget {
    const target = this.#keptTarget ?? new ByteTarget(keptBytes);
    this.#keptTarget = undefined;
    return target;
  }

  /** Keeps a buffer with the usual size for the next message. */
  keep(target: ByteTarget): void {
    if (target.bytes.byteLength === keptBytes) this.#keptTarget = target;
  }
}

const reusable = new ReusableTarget();

/**
 * Creates the function that writes a type's messages with the same bytes and errors as `toBinary`. The function's
 * result shares no memory with the message.
 */
export function createMessageWriter(
  desc: DescMessage,
  options: (Partial<BinaryWriteOptions> & CodegenOptions) | undefined,
): (message: Message) => Uint8Array {
  // The fast writer always writes unknown fields.
  if (options?.writeUnknownFields === false) return (message) => toBinary(desc, message, options);
  let writer: MessageWriter | undefined;
  return (message) => {
    if (!canCompile(options)) return toBinary(desc, message, options);
    writer ??= messageWriter(desc);
    // equivalent mutant: without the fast writer, writing only takes longer.
    return writeFast(writer, message) ?? toBinary(desc, message, options);
  };
}

/** Writes a message, or returns `undefined` if protobuf-es must write it. */
export function writeFast(writer: MessageWriter, message: Message): Uint8Array | undefined {
  let target = reusable.take();
  try {
    for (;;) {
      if (tryWrite(writer, message, target)) return takeBytes(writer, target);
      // equivalent mutant: with another limit, writing only takes longer.
      if (target.bytes.byteLength >= fastBytesMax) return undefined;
      target = new ByteTarget(Math.max(4 * target.bytes.byteLength, target.requiredBytes, writer.largeBytes));
    }
  } catch {
    // A property has a wrong type, or a getter has thrown an error. protobuf-es then reports the problem.
    return undefined;
  } finally {
    reusable.keep(target);
  }
}

function takeBytes(writer: MessageWriter, { bytes, at }: ByteTarget): Uint8Array {
  if (bytes.byteLength !== keptBytes) {
    // Adds an eighth to the size, so that the type's next large message probably fits.
    writer.largeBytes = Math.ceil(at * 1.125);
    if (at > 0.75 * bytes.byteLength) return bytes.subarray(0, at);
  }
  const copy = allocateBytes(at);
  copy.set(bytes.subarray(0, at));
  return copy;
}

/** Writes a message, and returns whether the message fits into the buffer. */
function tryWrite(writer: MessageWriter, message: Message, target: ByteTarget): boolean {
  target.at = 0;
  // equivalent mutant: without the reset, the next buffer is only larger than necessary.
  target.requiredBytes = 0;
  try {
    writer.write(target, message);
    return target.fits;
  } catch (error) {
    if (error === bufferTooSmall) return false;
    throw error;
  }
}
