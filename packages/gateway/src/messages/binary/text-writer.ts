import { unsure } from "../codegen/index.ts";
import { type ByteTarget, checkRoom, lengthBytes, writeLengthBefore } from "./byte-target.ts";

/** Characters up to which a text costs less to write here than by a call of the runtime. */
const shortTextLength = 40;

/** node's Buffer, where there is one: it writes at an offset, while a TextEncoder needs a subarray for it. */
const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

const encoder = new TextEncoder();

function writeLongText(text: string, bytes: Uint8Array, at: number): number {
  const isBuffer = NodeBuffer !== undefined && bytes instanceof NodeBuffer;
  return isBuffer ? bytes.write(text, at) : encoder.encodeInto(text, bytes.subarray(at)).written;
}

/** Writes a text behind its length. A lone surrogate becomes U+FFFD, as protobuf-es writes it. */
export function writeText(target: ByteTarget, text: unknown): void {
  if (typeof text !== "string") throw unsure;
  // No test can tell: a short text that is written only once there is room for a longer one is the same.
  if (text.length < shortTextLength && writeAscii(target, text)) return;
  // Three bytes for each unit of UTF-16 at most, and five for the length.
  checkRoom(target, 5 + 3 * text.length);
  const { bytes, at: start } = target;
  const reserved = lengthBytes(text.length);
  target.at = start + reserved + writeLongText(text, bytes, start + reserved);
  writeLengthBefore(target, start, reserved);
}

/** Writes a short text if all of it is ASCII. @returns whether it is */
function writeAscii(target: ByteTarget, text: string): boolean {
  const { bytes } = target;
  const { length } = text;
  const start = target.at + 1;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    // No test can tell: what was written before it is written over.
    if (code > 0x7f) return false;
    bytes[start + index] = code;
  }
  bytes[start - 1] = length;
  target.at = start + length;
  return true;
}
