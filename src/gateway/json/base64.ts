import { base64Decode } from "@bufbuild/protobuf/wire";

// RFC 4648 §4 and §5 in one: both alphabets, and padding only at the end. No white space, no line breaks.
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * Decodes base64 or base64url, padded or not, as proto3 JSON requires of readers.
 *
 * @returns `undefined` when the text is neither: it has other characters, an impossible length, or padding that does not
 * complete the last group
 */
export function parseBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!base64.test(text)) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.length - padding;
  if (digits % 4 === 1) return undefined;
  if (padding > 0 && (digits + padding) % 4 !== 0) return undefined;
  return base64Decode(text);
}
