import { bailOut } from "../codegen/index.ts";
import { type ByteTarget, requireCapacity, lengthBytes, writeLengthBefore } from "./byte-target.ts";

/** Length in characters below which JavaScript code writes a string faster than the runtime's encoder. */
const shortTextLength = 40;

/** node's Buffer, if it exists. Buffer writes at an offset directly, but a TextEncoder needs a subarray. */
const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

const encoder = new TextEncoder();

function writeLongText(text: string, bytes: Uint8Array, at: number): number {
  const isBuffer = NodeBuffer !== undefined && bytes instanceof NodeBuffer;
  return isBuffer ? bytes.write(text, at) : encoder.encodeInto(text, bytes.subarray(at)).written;
}

/** Writes a string with its length before it. A lone surrogate becomes U+FFFD, as in protobuf-es. */
export function writeString(target: ByteTarget, text: unknown): void {
  if (typeof text !== "string") throw bailOut;
  // equivalent mutant: the result is the same if the buffer is enlarged first.
  if (text.length < shortTextLength && writeAscii(target, text)) return;
  // A UTF-16 unit takes at most three bytes, and the length takes at most five bytes.
  requireCapacity(target, 5 + 3 * text.length);
  const { bytes, at: start } = target;
  const reserved = lengthBytes(text.length);
  target.at = start + reserved + writeLongText(text, bytes, start + reserved);
  writeLengthBefore(target, start, reserved);
}

/** Writes a short string if the string is ASCII. Returns whether the string was written. */
function writeAscii(target: ByteTarget, text: string): boolean {
  const { bytes } = target;
  const { length } = text;
  const start = target.at + 1;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    // equivalent mutant: the bytes written so far are overwritten.
    if (code > 0x7f) return false;
    bytes[start + index] = code;
  }
  bytes[start - 1] = length;
  target.at = start + length;
  return true;
}
