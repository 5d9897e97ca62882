/** The values of the digits of RFC 4648 §4 and §5, both alphabets in one, by character code; -1 for any other. */
const digitValues = new Int8Array(128).fill(-1);
for (const alphabet of [
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
]) {
  for (let value = 0; value < alphabet.length; value += 1) digitValues[alphabet.charCodeAt(value)] = value;
}

/**
 * Decodes base64 or base64url, padded or not, as proto3 JSON requires of readers.
 *
 * @returns `undefined` when the text is neither: it has other characters, an impossible length, or padding that does
 * not complete the last group
 */
// In one pass: to check the text before decoding it takes three times as long for a few bytes.
export function parseBase64(text: string): Uint8Array | undefined {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.length - padding;
  const rest = digits % 4;
  if (rest === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined;
  const bytes = new Uint8Array((digits - rest) * 0.75 + Math.max(0, rest - 1));
  let to = 0;
  for (let at = 0; at < digits; at += 4) {
    // Missing digits of the last group count as zero; their bytes are beyond the end of the array, and not kept.
    const value =
      (digitAt(text, at) << 18) |
      (digitAt(text, at + 1) << 12) |
      (at + 2 < digits ? digitAt(text, at + 2) << 6 : 0) |
      (at + 3 < digits ? digitAt(text, at + 3) : 0);
    if (value < 0) return undefined;
    bytes[to++] = value >> 16;
    bytes[to++] = value >> 8;
    bytes[to++] = value;
  }
  return bytes;
}

/** Returns the value of the digit, or a negative number, which stays negative however far it is shifted. */
function digitAt(text: string, at: number): number {
  return digitValues[text.charCodeAt(at)] ?? -1;
}
