import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

/** 256 bits: nobody can guess it, so a plain SHA-256 protects it as well as a slow password hash would. */
const randomByteCount = 32;

/** 36^50 is more than 2^256. */
const randomDigits = 50;

/** 36^7 is more than 2^32. */
const checksumDigits = 7;

/** Lets scanners for secrets find tokens that were committed, pasted or logged. */
const prefix = "plantstore_";

const form = new RegExp(`^(${prefix}[0-9a-z]{${randomDigits}})([0-9a-z]{${checksumDigits}})$`);

/**
 * Creates the text of a token: `plantstore_`, 50 digits of base 36 with 256 random bits, and 7 with the CRC-32 of
 * everything before them, which lets a scanner tell a token from a text that looks like one.
 */
export function createTokenText(): string {
  const random = BigInt(`0x${randomBytes(randomByteCount).toString("hex")}`);
  const text = `${prefix}${random.toString(36).padStart(randomDigits, "0")}`;
  return `${text}${checksumOf(text)}`;
}

/** Returns whether a text has the form of our tokens but a wrong checksum, so that nobody can have issued it. */
export function isMistyped(text: string): boolean {
  const [, start, checksum] = form.exec(text) ?? [];
  return start !== undefined && checksumOf(start) !== checksum;
}

function checksumOf(text: string): string {
  return crc32(text).toString(36).padStart(checksumDigits, "0");
}
