import { randomBytes } from "node:crypto";
import type { PresentedToken, Principal, TokenOutcome, TokenVerifier } from "./token-verifier.ts";

/** A token from code or a file of token hashes, stored as its digest. */
export interface StaticToken {
  /** The token's SHA-256 in lower-case hex. */
  readonly digest: string;
  /** The principal's subject, which is unique within a set of tokens. */
  readonly name: string;
  readonly scopes: ReadonlySet<string> | "all";
  /** When the token expires, in milliseconds since the epoch. `undefined` if the token never expires. */
  readonly expiresAtMs: number | undefined;
}

interface StaticEntry {
  readonly principal: Principal;
  readonly expiresAtMs: number;
}

const unknownOutcome: TokenOutcome = { kind: "unknown", reason: "no static token has this hash" };

// The kind is `invalid`, not `unknown`, so that a mistyped static token is not sent to an introspection endpoint.
const mistypedOutcome: TokenOutcome = { kind: "invalid", reason: "the token is mistyped: its checksum is wrong" };

/** A verifier for a replaceable set of tokens. */
interface StaticTokenVerifier extends TokenVerifier {
  readonly verify: (token: PresentedToken) => TokenOutcome;
  readonly replace: (tokens: readonly StaticToken[]) => void;
}

/**
 * Creates a synchronous verifier for a set of tokens. Finding a token takes 0.1 µs, regardless of the set's size.
 * Tokens are looked up by their SHA-256, so the lookup time reveals nothing: an attacker cannot choose a token by its
 * digest.
 *
 * @param tokenPrefix - the prefix of static tokens. Mistyped tokens with this prefix are detected by their checksum
 */
export function createStaticTokenVerifier(
  tokens: readonly StaticToken[],
  tokenPrefix: string | undefined,
): StaticTokenVerifier {
  let entries = entriesOf(tokens);
  return {
    verify({ digest, text }) {
      const entry = entries.get(digest);
      if (entry === undefined)
        return tokenPrefix !== undefined && isMistyped(text, tokenPrefix) ? mistypedOutcome : unknownOutcome;
      if (Date.now() < entry.expiresAtMs) return entry.principal;
      return { kind: "expired", reason: `the token ${entry.principal.subject} has expired` };
    },
    replace(newTokens) {
      entries = entriesOf(newTokens);
    },
  };
}

function entriesOf(tokens: readonly StaticToken[]): ReadonlyMap<string, StaticEntry> {
  return new Map(tokens.map((token) => [token.digest, toEntry(token)]));
}

function toEntry(token: StaticToken): StaticEntry {
  return {
    principal: { kind: "principal", subject: token.name, issuer: undefined, scopes: token.scopes },
    expiresAtMs: token.expiresAtMs ?? Number.POSITIVE_INFINITY,
  };
}

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
