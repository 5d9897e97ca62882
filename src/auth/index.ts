/**
 * Who asks? This room reads the bearer credential of a request, has it verified and remembers the principal.
 *
 * The flow: `readBearerToken` judges the syntax, a `TokenVerifier` says whose token it is, `bearerAuth` turns
 * whatever is wrong into the one answer that standards and design give it, and `subjectOf` tells the
 * handler who asked. Verifiers know nothing of requests, and the room knows nothing of plants, of the
 * gateway (whose `admit` it types by structure) or of sockets.
 */
export { auditFieldsOf, type AuditFields } from "./audit-fields.ts";
export { bearerAuth, type AdmitRequest, type BearerAuth, type BearerAuthOptions } from "./bearer-auth.ts";
export type { IntrospectionSource } from "./introspection/open-introspection-verifier.ts";
export { issueToken, type IssuedToken, type TokenWish } from "./issue-token.ts";
export { isJwtAlgorithm, jwtAlgorithms, type JwtAlgorithm } from "./jwt/jwt-algorithm.ts";
export type { JwtSource } from "./jwt/open-jwt-verifier.ts";
export { openTokenVerifier, type TokenSources } from "./open-token-verifier.ts";
export type { Parsed } from "./parsed.ts";
export { parsePlainTokens, toStaticToken } from "./plain-tokens.ts";
export { principalOf, subjectOf } from "./principal-context.ts";
export { protectedResourceMetadata, type MetadataEndpoint } from "./protected-resource.ts";
export { parseProviderUrl } from "./provider-url.ts";
export { refusalOf, type Refusal, type RefusalKind } from "./refusal.ts";
export type { StaticToken } from "./static-token.ts";
export type { PresentedToken, Principal, TokenOutcome, TokenProblem, TokenVerifier } from "./token-verifier.ts";
