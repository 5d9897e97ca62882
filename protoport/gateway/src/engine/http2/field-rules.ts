import { connectionSpecificFields } from "../../http/index.ts";

/** Returns whether a trailer section is well formed and has no pseudo-header fields (RFC 9113 §8.1). */
export function isTrailer(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    // A pseudo-header field is not regular, because its name is not a token.
    if (!isRegularField(fields[i] ?? "", fields[i + 1] ?? "")) return false;
  }
  return true;
}

/** The first character in pseudo-header field names (§8.3). */
export const colon = 0x3a;

/** Returns whether a regular field is valid in a header or trailer section (RFC 9113 §8.2). */
export function isRegularField(name: string, value: string): boolean {
  if (!isLowerCaseToken(name) || connectionSpecificFields.has(name) || !isFieldValue(value)) return false;
  return name !== "te" || value.toLowerCase() === "trailers";
}

// Returns whether a name is a token (RFC 9110 §5.6.2) without upper-case letters, which RFC 9113 §8.2.1 forbids.
function isLowerCaseToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(text);
}

// §8.2.1: no NUL, CR or LF, and no white space at either end. RFC 9110 §5.5 allows rejecting other control characters.
function isFieldValue(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const octet = value.charCodeAt(at);
    if (octet < 0x20 ? octet !== 0x09 : octet === 0x7f) return false;
  }
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(value.length - 1);
  return first !== 0x20 && first !== 0x09 && last !== 0x20 && last !== 0x09;
}
