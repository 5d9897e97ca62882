import { randomBytes } from "node:crypto";

/** 256 random bits cannot be guessed, so a plain SHA-256 protects a token as well as a slow password hash. */
const randomByteCount = 32;

/** Number of base-36 digits for 256 random bits. 50 digits suffice, because 36^50 is more than 2^256. */
const randomDigits = 50;

/** Number of base-36 digits for the CRC-32. 7 digits suffice, because 36^7 is more than 2^32. */
const checksumDigits = 7;

/**
 * Creates a token from a prefix, 256 random bits in 50 base-36 digits, and a CRC-32 in 7 digits. Secret scanners find
 * tokens by the prefix, and distinguish them from similar strings by the CRC-32.
 */
export function createTokenText(prefix: string): string {
  const random = BigInt(`0x${randomBytes(randomByteCount).toString("hex")}`);
  const text = `${prefix}${random.toString(36).padStart(randomDigits, "0")}`;
  return `${text}${checksumOf(text)}`;
}

/** Returns whether a string with a static token's prefix and length has a wrong checksum, and so was never issued. */
export function isMistyped(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || text.length !== prefix.length + randomDigits + checksumDigits) return false;
  return checksumOf(text.slice(0, -checksumDigits)) !== text.slice(-checksumDigits);
}

function checksumOf(text: string): string {
  // `node:zlib` is loaded on demand, because loading takes 3 ms and 3 MB, and mistyped tokens are rare.
  const { crc32 } = process.getBuiltinModule("node:zlib");
  return crc32(text).toString(36).padStart(checksumDigits, "0");
}
