import { isMistyped } from "./token-text.ts";
import type { PresentedToken, Principal, TokenOutcome, TokenVerifier } from "./token-verifier.ts";

/** One of our own tokens, stored as its digest. */
export interface StaticToken {
  /** The token's SHA-256 in lower-case hex. */
  readonly digest: string;
  /** The principal's subject, which is unique among one set's tokens. */
  readonly name: string;
  readonly scopes: ReadonlySet<string> | "all";
  /** When the token expires, in milliseconds since the epoch, or `undefined` for never. */
  readonly expiresAtMs: number | undefined;
}

interface Entry {
  readonly principal: Principal;
  readonly expiresAtMs: number;
}

const unknown: TokenOutcome = { kind: "unknown", reason: "no static token has this hash" };

// `invalid` rather than `unknown`, so that our own tokens are not sent to an introspection endpoint if mistyped.
const mistypedOutcome: TokenOutcome = { kind: "invalid", reason: "the token is mistyped: its checksum is wrong" };

/** A verifier for a set of tokens, which can be replaced. */
export interface StaticTokenVerifier extends TokenVerifier {
  readonly verify: (token: PresentedToken) => TokenOutcome;
  readonly replace: (tokens: readonly StaticToken[]) => void;
}

/**
 * Creates a synchronous verifier for a set of tokens. A hit takes 0.1 µs, regardless of the set's size.
 *
 * Tokens are looked up by their SHA-256, so the lookup time reveals nothing. An attacker cannot choose a token whose
 * digest resembles a valid one's.
 *
 * @param tokenPrefix - the prefix that our own tokens have. Mistyped tokens with this prefix are detected by their
 * checksum
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
        return tokenPrefix !== undefined && isMistyped(text, tokenPrefix) ? mistypedOutcome : unknown;
      if (Date.now() < entry.expiresAtMs) return entry.principal;
      return { kind: "expired", reason: `the token ${entry.principal.subject} has expired` };
    },
    replace(newTokens) {
      entries = entriesOf(newTokens);
    },
  };
}

function entriesOf(tokens: readonly StaticToken[]): ReadonlyMap<string, Entry> {
  return new Map(tokens.map((token) => [token.digest, toEntry(token)]));
}

function toEntry(token: StaticToken): Entry {
  return {
    principal: { kind: "principal", subject: token.name, issuer: undefined, scopes: token.scopes },
    expiresAtMs: token.expiresAtMs ?? Number.POSITIVE_INFINITY,
  };
}
