import { readBearerToken, tokenLimitChars } from "./bearer-token.ts";
import { withProblems, parsed, type ParseResult } from "./inputs/index.ts";
import type { StaticToken } from "./static-token.ts";
import { digestOf } from "./token-verifier.ts";

/** Minimum length of a plain token, in characters. 16 random characters from the b64token alphabet have 96 bits. */
const plainTokenMinChars = 16;

/** Returns a static token with every scope and no expiry. The static token contains only the hash. */
export function toStaticToken(name: string, token: string): StaticToken {
  return { digest: digestOf(token), name, scopes: "all", expiresAtMs: undefined };
}

/**
 * Parses plain tokens from an array, or from a string separated by commas, as in the environment variable for
 * development. Spaces around a token are ignored. The tokens are named `token-1`, `token-2` … by position.
 */
export function parsePlainTokens(given: string | readonly string[]): ParseResult<readonly StaticToken[]> {
  const texts = typeof given === "string" ? given.split(",") : given;
  const tokens = texts.map((token) => token.trim());
  const problems = tokens.flatMap((token, index) => {
    const problem = plainTokenProblem(token) ?? (tokens.indexOf(token) < index ? "is a duplicate" : undefined);
    return problem === undefined ? [] : [`token ${index + 1} ${problem}`];
  });
  if (problems.length > 0) return withProblems(...problems);
  return parsed(tokens.map((token, index) => toStaticToken(`token-${index + 1}`, token)));
}

function plainTokenProblem(token: string): string | undefined {
  if (token.length === 0) return "is empty";
  if (token.length > tokenLimitChars) return `is longer than ${tokenLimitChars} characters`;
  // A token that `readBearerToken` rejects would be rejected in each request.
  if (readBearerToken(`Bearer ${token}`).kind !== "token") {
    return 'contains a character that a bearer token cannot have (RFC 6750 §2.1: A-Z a-z 0-9 - . _ ~ + / and "=" at the end)';
  }
  if (token.length < plainTokenMinChars) return `is shorter than ${plainTokenMinChars} characters`;
  return undefined;
}
