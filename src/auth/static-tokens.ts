import { indexStaticTokens, type StaticToken } from "./static-token.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** Returns a verifier over a fixed set of tokens; it never asks anybody, so it never makes a promise. */
export function staticTokens(tokens: readonly StaticToken[]): TokenVerifier {
  const lookUp = indexStaticTokens(tokens);
  return { verify: ({ digest }) => lookUp(digest) };
}
