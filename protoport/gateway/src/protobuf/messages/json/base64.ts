import { base64Decode } from "@bufbuild/protobuf/wire";

// Matches digits in both base64 alphabets (RFC 4648 §4 and §5).
const digits = /^[A-Za-z0-9+/_-]*$/;

/**
 * Decodes base64 and base64url, with or without padding, as proto3 JSON requires. Returns `undefined` for other
 * characters, an impossible length, or padding that does not complete the last group.
 */
export function parseBase64(text: string): Uint8Array | undefined {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const length = text.length - padding;
  if (length % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined;
  // The digits are checked, because protobuf-es would skip spaces and accept padding in the middle.
  return digits.test(text.slice(0, length)) ? base64Decode(text) : undefined;
}
