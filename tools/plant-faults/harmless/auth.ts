import type { HarmlessFaults } from "./harmless-fault.ts";

/** Harmless faults in `src/auth`. */
export const harmlessInAuth: readonly HarmlessFaults[] = [
  {
    file: "src/auth/provider-url.ts",
    line: 'return hostname === "localhost"',
    fault: "/^127",
    why: "a host that ends in a number is an IPv4 address, or no host at all",
  },
  {
    file: "src/auth/principal-context.ts",
    line: 'description: "principal",',
    why: "a name for debuggers",
  },
  {
    file: "src/auth/jwt/unverified-jwt.ts",
    line: "const compactJws =",
    why: "what has another shape cannot be decoded; to look first is cheaper",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES256: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES384: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES512: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'EdDSA: { kty: "OKP"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'Ed25519: { kty: "OKP"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "const isDue = this.#failures === 0",
    fault: "performance.now() - this.#askedAtMs >=",
    why: "a millisecond of ten seconds",
  },
  {
    file: "src/auth/introspection/introspection-verifier.ts",
    line: "if (Date.now() - awayAtMs < pauseMs)",
    fault: "Date.now() - awayAtMs < pauseMs → Date.now() - awayAtMs <= pauseMs",
    why: "a millisecond of a second",
  },
  {
    file: "src/auth/static-token.ts",
    line: "if (Date.now() < entry.expiresAtMs) return",
    fault: "Date.now() < entry.expiresAtMs → Date.now() <=",
    why: "a millisecond of the life of a token",
  },
  {
    file: "src/auth/jwt/verify-jwt.ts",
    line: "algorithms: [algorithm],",
    fault: "algorithms: [algorithm]",
    why: "the key was imported for this algorithm alone",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "return performance.now() - this.#fetchedAtMs < ",
    fault: "performance.now() - this.#fetchedAtMs < this.#timing.usableMs → performance.now() - this.#fetchedAtMs <=",
    why: "a millisecond of hours",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: "(shape.crv === undefined ||",
    fault: "shape.crv === undefined \u2192",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/verify-jwt.ts",
    line: "if (iat !== undefined && !(typeof iat",
    fault: "iat <= ",
    why: "a millisecond of a minute",
  },
  {
    file: "src/auth/introspection/introspected-token.ts",
    line: "if (exp !== undefined && exp + clockSkewS <= nowS)",
    fault: "exp + clockSkewS <= nowS \u2192",
    why: "a millisecond of a minute",
  },
  {
    file: "src/auth/introspection/introspected-token.ts",
    line: "if (nbf !== undefined && !(typeof nbf",
    fault: "nbf - clockSkewS <= nowS \u2192",
    why: "a millisecond of a minute",
  },
  {
    file: "src/auth/introspection/introspection-verifier.ts",
    line: "return Date.now() - awayAtMs < problemForMs",
    fault: "Date.now() - awayAtMs < problemForMs \u2192 Date.now() - awayAtMs <=",
    why: "a millisecond of ten seconds",
  },
  {
    file: "src/auth/fetch-text.ts",
    line: "if (!(error instanceof Error)) return String(error);",
    fault: "return String(error);",
    why: "fetch rejects with nothing but errors, which the compiler does not know",
  },
  {
    file: "src/auth/watched-file.ts",
    line: "taken = performance.now() - changedAtMs <",
    fault: "taken = ",
    why: "to read a file again that has not changed costs time alone",
  },
  {
    file: "src/auth/watched-file.ts",
    line: "taken = performance.now() - changedAtMs <",
    fault: "performance.now() - changedAtMs < timestampGranularityMs \u2192 true",
    why: "to read a file again that has not changed costs time alone",
  },
  {
    file: "src/auth/watched-file.ts",
    line: "taken = performance.now() - changedAtMs <",
    fault: "performance.now() - changedAtMs < timestampGranularityMs \u2192 performance.now() - changedAtMs <=",
    why: "a millisecond of two seconds",
  },
  {
    file: "src/auth/watched-file.ts",
    line: "const timestampGranularityMs = 2_000;",
    why: "to read a file again that has not changed costs time alone",
  },
  {
    file: "src/auth/watched-file.ts",
    line: "const pollIntervalMs = 250;",
    why: "a millisecond more",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "#nextAtMs = 0;",
    why: "it is set before it is read",
  },
  {
    file: "src/auth/jwt/key-set.ts",
    line: 'return typeof value === "string" ? [[name, value]',
    fault: 'typeof value === "string" → true',
    why: "a key with a member that is no text cannot be imported",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "const spreadMs = delayMs * (0.75",
    fault: "4 → 5",
    why: "a fifth spreads the fetches, too",
  },
  {
    file: "src/auth/introspection/open-introspection-verifier.ts",
    line: "const timeoutMs = source.timeoutMs ?? introspectionTimeoutMs;",
    fault: "source.timeoutMs ?? introspectionTimeoutMs → (introspectionTimeoutMs)",
    why: "a shorter time lets tests end sooner; no setting gives another one",
  },
];
