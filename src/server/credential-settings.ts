import {
  type IntrospectionSource,
  isJwtAlgorithm,
  type JwtAlgorithm,
  jwtAlgorithms,
  type JwtSource,
  parsePlainTokens,
  parseProviderUrl,
  type StaticToken,
  type TokenSources,
} from "../auth/index.ts";
import { bad, oneOf, readableFile, type Reading, type Setting, value } from "./setting.ts";

/** Who vouches for tokens, as an operator decides it. */
export interface CredentialConfiguration {
  /** Development tokens; only their hashes are left here. */
  readonly tokens: readonly StaticToken[] | undefined;
  readonly tokenHashesFile: string | undefined;
  readonly jwtIssuers: readonly string[] | undefined;
  readonly jwtAudiences: readonly string[] | undefined;
  /** The key set of each issuer, in their order. */
  readonly jwksUrls: readonly string[] | undefined;
  readonly jwksFile: string | undefined;
  readonly jwtAlgorithms: readonly JwtAlgorithm[];
  readonly jwtType: "any" | "at+jwt";
  readonly providerScopes: "ignored" | "demanded";
  readonly jwtScopeClaims: readonly string[];
  readonly introspectionUrl: string | undefined;
  readonly introspectionClientId: string | undefined;
  readonly introspectionClientSecretFile: string | undefined;
  readonly introspectionAudiences: readonly string[] | undefined;
}

/** Continues the sentence "… must". */
const safeUrl = "be an https URL, or http to the loopback address";

/** The settings of credentials. */
export const credentialSettings: {
  readonly [Key in keyof CredentialConfiguration]: Setting<NonNullable<CredentialConfiguration[Key]>>;
} = {
  tokens: {
    variable: "PLANTSTORE_TOKENS",
    about: "bearer tokens in clear, separated by commas, for development",
    secret: true,
    read: readTokens,
  },
  tokenHashesFile: {
    variable: "PLANTSTORE_TOKEN_HASHES_FILE",
    flag: "token-hashes-file",
    about: "file of token hashes, as `plantstore token create` writes it",
    read: readableFile,
  },
  jwtIssuers: {
    variable: "PLANTSTORE_JWT_ISSUER",
    flag: "jwt-issuer",
    about: "issuers whose JWTs are taken, separated by commas, each as `iss` spells it",
    read: listOf("be texts separated by commas", (text) => text || undefined),
  },
  jwtAudiences: {
    variable: "PLANTSTORE_JWT_AUDIENCE",
    flag: "jwt-audience",
    about: "audiences of which a JWT must name one, separated by commas",
    read: listOf("be texts separated by commas", (text) => text || undefined),
  },
  jwksUrls: {
    variable: "PLANTSTORE_JWKS_URL",
    flag: "jwks-url",
    about: "key set of each issuer, in their order; without it the issuer's metadata is asked",
    read: listOf(`${safeUrl}; several are separated by commas`, providerUrl),
  },
  jwksFile: {
    variable: "PLANTSTORE_JWKS_FILE",
    flag: "jwks-file",
    about: "key set of the one issuer as a file, which is followed",
    read: readableFile,
  },
  jwtAlgorithms: {
    variable: "PLANTSTORE_JWT_ALGORITHMS",
    flag: "jwt-algorithms",
    about: "signature algorithms that are taken, separated by commas",
    fallback: "RS256,PS256,ES256,EdDSA",
    read: listOf(`be some of ${jwtAlgorithms.join(", ")}`, (text) => (isJwtAlgorithm(text) ? text : undefined)),
  },
  jwtType: {
    variable: "PLANTSTORE_JWT_TYPE",
    flag: "jwt-type",
    about: "what `typ` must be: any, or at+jwt as RFC 9068 has it",
    fallback: "any",
    read: oneOf(["any", "at+jwt"]),
  },
  providerScopes: {
    variable: "PLANTSTORE_PROVIDER_SCOPES",
    flag: "provider-scopes",
    about: "scopes of tokens that are not our own: ignored, or demanded",
    fallback: "ignored",
    read: oneOf(["ignored", "demanded"]),
  },
  jwtScopeClaims: {
    variable: "PLANTSTORE_JWT_SCOPE_CLAIMS",
    flag: "jwt-scope-claims",
    about: "claims of a JWT that hold its scopes, where they are demanded, separated by commas",
    fallback: "scope,scp",
    read: listOf("be names separated by commas", (text) => text || undefined),
  },
  introspectionUrl: {
    variable: "PLANTSTORE_INTROSPECTION_URL",
    flag: "introspection-url",
    about: "endpoint that is asked about every other token (RFC 7662)",
    read: (text) => {
      const url = providerUrl(text);
      return url === undefined ? bad(safeUrl) : value(url);
    },
  },
  introspectionClientId: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_ID",
    flag: "introspection-client-id",
    about: "who we are to that endpoint",
    read: value,
  },
  introspectionClientSecretFile: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE",
    flag: "introspection-client-secret-file",
    about: "file with our secret there, which is followed",
    read: readableFile,
  },
  introspectionAudiences: {
    variable: "PLANTSTORE_INTROSPECTION_AUDIENCE",
    flag: "introspection-audience",
    about: "audiences of which an introspected token must name one, separated by commas",
    read: listOf("be texts separated by commas", (text) => text || undefined),
  },
};

/** Says what of the settings of credentials does not go together; `isGiven` says what was set at all. */
export function credentialContradictions(
  configuration: Partial<CredentialConfiguration>,
  isGiven: (setting: Setting<unknown>) => boolean,
): string[] {
  const { jwtIssuers, jwksUrls } = configuration;
  const given = (key: keyof CredentialConfiguration): boolean => isGiven(credentialSettings[key]);
  const problems: string[] = [];
  if (given("jwtIssuers") !== given("jwtAudiences")) {
    problems.push("PLANTSTORE_JWT_ISSUER and PLANTSTORE_JWT_AUDIENCE must be given together");
  }
  if ((given("jwksUrls") || given("jwksFile")) && !given("jwtIssuers")) {
    problems.push("PLANTSTORE_JWKS_URL and PLANTSTORE_JWKS_FILE need PLANTSTORE_JWT_ISSUER");
  }
  if (jwtIssuers !== undefined && jwksUrls !== undefined && jwtIssuers.length !== jwksUrls.length) {
    problems.push("PLANTSTORE_JWKS_URL must have one URL for each of PLANTSTORE_JWT_ISSUER, in their order");
  }
  if (given("jwksFile") && (given("jwksUrls") || (jwtIssuers !== undefined && jwtIssuers.length > 1))) {
    problems.push("PLANTSTORE_JWKS_FILE is for one issuer, and goes without PLANTSTORE_JWKS_URL");
  }
  if (given("jwtScopeClaims") && !(given("jwtIssuers") && configuration.providerScopes === "demanded")) {
    problems.push("PLANTSTORE_JWT_SCOPE_CLAIMS needs PLANTSTORE_JWT_ISSUER and PLANTSTORE_PROVIDER_SCOPES=demanded");
  }
  const introspection = [
    given("introspectionUrl"),
    given("introspectionClientId"),
    given("introspectionClientSecretFile"),
  ];
  if (introspection.includes(true) && introspection.includes(false)) {
    problems.push(
      "PLANTSTORE_INTROSPECTION_URL, PLANTSTORE_INTROSPECTION_CLIENT_ID and PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE must be given together",
    );
  }
  return problems;
}

/** The settings of which one is enough to verify credentials. */
export const verifierSettings: readonly Setting<unknown>[] = [
  credentialSettings.tokenHashesFile,
  credentialSettings.tokens,
  credentialSettings.jwtIssuers,
  credentialSettings.introspectionUrl,
];

/** Returns who vouches for tokens, or `undefined` when nobody is configured to. */
export function tokenSourcesOf(configuration: CredentialConfiguration): TokenSources | undefined {
  const { tokens, tokenHashesFile, jwtIssuers } = configuration;
  const introspection = introspectionOf(configuration);
  const jwt = jwtIssuers?.map((issuer, index) => jwtSourceOf(issuer, index, configuration));
  const sources = { tokens, tokenHashesFile, jwt, introspection };
  return Object.values(sources).every((source) => source === undefined) ? undefined : sources;
}

function jwtSourceOf(issuer: string, index: number, configuration: CredentialConfiguration): JwtSource {
  const { jwtAudiences, jwksUrls, jwksFile, jwtType, providerScopes } = configuration;
  const url = jwksUrls?.[index];
  const keys = jwksFile === undefined ? url && { url } : { file: jwksFile };
  return {
    issuer,
    audiences: jwtAudiences ?? [],
    keys: keys || undefined,
    algorithms: configuration.jwtAlgorithms,
    demandAccessTokenType: jwtType === "at+jwt",
    demandScopes: providerScopes === "demanded",
    scopeClaims: configuration.jwtScopeClaims,
  };
}

function introspectionOf(configuration: CredentialConfiguration): IntrospectionSource | undefined {
  const { introspectionUrl: url, introspectionClientId: clientId } = configuration;
  const { introspectionClientSecretFile: clientSecretFile, introspectionAudiences: audiences } = configuration;
  if (url === undefined || clientId === undefined || clientSecretFile === undefined) return undefined;
  return { url, clientId, clientSecretFile, audiences, demandScopes: configuration.providerScopes === "demanded" };
}

function readTokens(text: string): Reading<readonly StaticToken[]> {
  const tokens = parsePlainTokens(text);
  return tokens.kind === "value" ? value(tokens.value) : bad(`hold bearer tokens: ${tokens.problems.join(", ")}`);
}

function listOf<T>(must: string, read: (text: string) => T | undefined): (text: string) => Reading<readonly T[]> {
  return (text) => {
    const items = text.split(",").map((item) => read(item.trim()));
    const good = items.filter((item) => item !== undefined);
    return good.length === items.length ? value(good) : bad(must);
  };
}

function providerUrl(text: string): string | undefined {
  return parseProviderUrl(text).kind === "value" ? text : undefined;
}
