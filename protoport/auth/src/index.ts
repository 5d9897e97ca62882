/**
 * Authentication. The module parses and verifies a request's bearer credential, and stores the principal.
 *
 * `readBearerToken` checks the syntax, and a `TokenVerifier` returns a token's principal. `createBearerAuth` stores the
 * principal under `principalKey` for the handler, or turns a failure into the response that the standards prescribe.
 */
export { createBearerAuth, type BearerAuth, type CredentialRequest } from "./bearer-auth.ts";
export type { BearerAuthOptions } from "./bearer-auth-options.ts";
export type { CredentialChecks } from "./credential-interceptor.ts";
export type { IntrospectionSource } from "./introspection/open-introspection-verifier.ts";
export { credentialRefusalOf } from "./credential-refusal.ts";
export { issueToken, type IssuedToken, type TokenRequest } from "./issue-token.ts";
export { isJwtAlgorithm, jwtAlgorithms, type JwtAlgorithm } from "./jwt/jwt-algorithm.ts";
export type { JwtSource } from "./jwt/open-jwt-verifier.ts";
export { openOptionProblem } from "./requirements.ts";
export { openTokenVerifier, type SourceNames, type TokenSources } from "./open-token-verifier.ts";
export { parsePlainTokens, toStaticToken } from "./plain-tokens.ts";
export { type Principal, principalKey, type TokenVerifier } from "./token-verifier.ts";
export { createResourceMetadata, type ResourceMetadata } from "./protected-resource.ts";
export { requiredScopesOf } from "./required-scopes.ts";
export { parseProviderUrl } from "./fetch-text.ts";
export { type CallRates, createRateLimit, limitRates, type RateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { listTokens, revokeToken } from "./token-hashes-file.ts";
export type { StaticToken } from "./static-token.ts";
