import type { OperatorLog } from "../../../auth/src/inputs/reload-record.ts";
import { openJwtVerifier, type JwtSource } from "../../../auth/src/jwt/open-jwt-verifier.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../../auth/src/token-verifier.ts";
import { within } from "../deadline.ts";
import { createSigningKey, startIdentityProvider, testAudience, type IdentityProvider } from "./identity-provider.ts";
import { quietLog } from "../operations/quiet-log.ts";

/** An hour in milliseconds, which is longer than any test. */
export const hourMs = 3_600_000;

/** Key timing without a refresh during a test, so that the verifier fetches keys only on demand, and then immediately. */
export const byDemand: NonNullable<JwtSource["timing"]> = {
  refreshMs: hourMs,
  backOffMs: hourMs,
  maxBackOffMs: hourMs,
  fetchMs: hourMs,
  unknownKeyGapMs: 0,
};

export async function openVerifier(
  source: Partial<JwtSource> & { issuer: string },
  log: OperatorLog = quietLog,
): Promise<TokenVerifier & Disposable> {
  const result = await openJwtVerifier([{ audiences: [testAudience], timing: byDemand, ...source }], log);
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  // The result inherits from the verifier, because `problem` is a getter whose value changes.
  return Object.assign(Object.create(result.value), { [Symbol.dispose]: () => result.value.close?.() });
}

/** Opens a verifier for a provider's tokens that fetches keys without discovery. */
export const openVerifierAt = (
  { issuer, keysUrl }: IdentityProvider,
  timing: JwtSource["timing"] = byDemand,
  log?: OperatorLog,
): Promise<TokenVerifier & Disposable> => openVerifier({ issuer, keysUrl: keysUrl, timing }, log);

export const outcomeOf = async (verifier: TokenVerifier, token: string): Promise<TokenOutcome> =>
  await within(Promise.resolve(verifier.verify({ text: token, digest: digestOf(token) })), "the outcome");

/** Starts a provider with one key. */
export const startProvider = async (keyId = "first"): Promise<IdentityProvider> =>
  await startIdentityProvider(await createSigningKey("ES256", keyId));
