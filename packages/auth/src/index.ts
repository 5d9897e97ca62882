/**
 * Who is calling? This room reads the bearer credential of a request, has it verified and remembers the principal.
 *
 * The flow: `readBearerToken` checks the syntax, a `TokenVerifier` finds out whose token it is, and `createBearerAuth`
 * turns every failure into the response that the standards prescribe, or stores the principal under `principalKey` for
 * the handler. Verifiers know nothing of requests, and the module knows nothing of sockets. From the gateway it
 * imports types only.
 */
export { createBearerAuth, type BearerAuth, type CredentialRequest } from "./bearer-auth.ts";
export type { IntrospectionSource } from "./introspection/open-introspection-verifier.ts";
export { credentialRefusalOf } from "./credential-refusal.ts";
export { issueToken, type IssuedToken, type TokenRequest } from "./issue-token.ts";
export { isJwtAlgorithm, jwtAlgorithms, type JwtAlgorithm } from "./jwt/jwt-algorithm.ts";
export type { JwtSource } from "./jwt/open-jwt-verifier.ts";
export { openTokenVerifier, type SourceNames, type TokenSources } from "./open-token-verifier.ts";
export { parsePlainTokens, toStaticToken } from "./plain-tokens.ts";
export { principalKey } from "./principal-context.ts";
export { createResourceMetadata, type ResourceMetadata } from "./protected-resource.ts";
export { parseProviderUrl } from "./provider-url.ts";
export { createRateLimit, type RateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { listTokens, revokeToken } from "./token-hashes-file.ts";
export type { StaticToken } from "./static-token.ts";
export type { Principal, TokenVerifier } from "./token-verifier.ts";
