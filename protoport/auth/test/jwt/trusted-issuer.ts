import type { IssuerKeys } from "../../src/jwt/issuer-keys.ts";
import type { TrustedIssuer } from "../../src/jwt/verify-jwt.ts";

/** Returns an issuer whose EdDSA tokens for the audience `orders` are accepted. */
export function trustedIssuer(keys: Pick<IssuerKeys, "find" | "current">): TrustedIssuer {
  return {
    issuer: "https://id.example",
    audiences: ["orders"],
    audienceClaim: undefined,
    scopeClaims: undefined,
    algorithms: ["EdDSA"],
    requireAccessTokenType: false,
    keys: {
      find: keys.find,
      get current() {
        return keys.current;
      },
      fetchedAtMs: undefined,
      retryAfterS: undefined,
      problem: undefined,
      reload: () => Promise.resolve(),
      close: () => {},
    },
  };
}
