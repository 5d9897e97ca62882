import { randomBytes } from "node:crypto";

/** 256 bits: nobody can guess it, so a plain SHA-256 protects it as well as a slow password hash would. */
const randomByteCount = 32;

/** 36^50 is more than 2^256. */
const randomDigits = 50;

/** 36^7 is more than 2^32. */
const checksumDigits = 7;

/**
 * Creates the text of a token: a prefix, 50 digits of base 36 with 256 random bits, and 7 with the CRC-32 of everything
 * before them, which lets a scanner tell a token from a text that looks like one.
 *
 * @param prefix - what scanners for secrets find tokens by that were committed, pasted or logged
 */
export function createTokenText(prefix: string): string {
  const random = BigInt(`0x${randomBytes(randomByteCount).toString("hex")}`);
  const text = `${prefix}${random.toString(36).padStart(randomDigits, "0")}`;
  return `${text}${checksumOf(text)}`;
}

/** Returns whether a text has the form of our tokens but a wrong checksum, so that nobody can have issued it. */
export function isMistyped(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || text.length !== prefix.length + randomDigits + checksumDigits) return false;
  return checksumOf(text.slice(0, -checksumDigits)) !== text.slice(-checksumDigits);
}

function checksumOf(text: string): string {
  // Loaded on demand, because node takes 3 ms and 3 MB for it, and a server seldom sees a mistyped token.
  const { crc32 } = process.getBuiltinModule("node:zlib");
  return crc32(text).toString(36).padStart(checksumDigits, "0");
}
