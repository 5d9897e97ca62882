import {
  type IntrospectionSource,
  isJwtAlgorithm,
  type JwtAlgorithm,
  jwtAlgorithms,
  type JwtSource,
  parsePlainTokens,
  parseProviderUrl,
  type SourceNames,
  type StaticToken,
  type TokenSources,
} from "@plantstore/auth";
import { withProblems, parsed, type ParseResult } from "@plantstore/auth/inputs";
import { alternatives, oneOf, readableFile, type Setting } from "./setting-readers.ts";

/** The credential configuration. */
export interface CredentialConfiguration {
  /** Tokens for development. Only the hash of each token is stored. */
  readonly tokens: readonly StaticToken[] | undefined;
  readonly tokenHashesFile: string | undefined;
  readonly jwtIssuers: readonly string[] | undefined;
  readonly jwtAudiences: readonly string[] | undefined;
  readonly jwtAudienceClaim: string | undefined;
  /** The URL of each issuer's key set, in the order of `jwtIssuers`. */
  readonly jwtKeysUrls: readonly string[] | undefined;
  readonly jwtKeysFile: string | undefined;
  readonly jwtAlgorithms: readonly JwtAlgorithm[];
  readonly jwtType: "any" | "at+jwt";
  readonly providerScopes: "ignored" | "enforced";
  readonly jwtScopeClaims: readonly string[];
  readonly introspectionUrl: string | undefined;
  readonly introspectionClientId: string | undefined;
  readonly introspectionClientSecretFile: string | undefined;
  readonly introspectionAudiences: readonly string[] | undefined;
  readonly introspectionSubjectClaim: string | undefined;
}

const texts = listOf("be a comma-separated list without empty items", (text) => text || undefined);

const safeUrl = "be an https URL, or an http URL of a loopback address";

/** The credential settings. */
export const credentialSettings: {
  readonly [Key in keyof CredentialConfiguration]: Setting<NonNullable<CredentialConfiguration[Key]>>;
} = {
  tokens: {
    title: "Your own tokens",
    variable: "PLANTSTORE_TOKENS",
    help: "plain bearer tokens, separated by commas, for development",
    secret: "hidden",
    read: readTokens,
  },
  tokenHashesFile: {
    variable: "PLANTSTORE_TOKEN_HASHES_FILE",
    help: "file of token hashes, written by `plantstore token create`",
    read: readableFile,
  },
  jwtIssuers: {
    title: "JSON Web Tokens",
    variable: "PLANTSTORE_JWT_ISSUERS",
    help: "issuers whose JWTs are accepted, separated by commas, spelled exactly as in `iss`",
    read: texts,
  },
  jwtAudiences: {
    variable: "PLANTSTORE_JWT_AUDIENCES",
    help: "audiences, separated by commas; a JWT must contain one of them",
    read: texts,
  },
  jwtAudienceClaim: {
    variable: "PLANTSTORE_JWT_AUDIENCE_CLAIM",
    help: "claim that must contain an audience if a JWT has no `aud`: `client_id` for Amazon Cognito; by default, these JWTs are refused",
    read: parsed,
  },
  jwtKeysUrls: {
    variable: "PLANTSTORE_JWT_KEYS_URLS",
    help: "URLs of the issuers' key sets (JWKS), separated by commas, in the order of the issuers; by default taken from each issuer's metadata",
    read: listOf("be a comma-separated list of https URLs, or http URLs of a loopback address", providerUrl),
  },
  jwtKeysFile: {
    variable: "PLANTSTORE_JWT_KEYS_FILE",
    help: "file with the key set (JWKS) of a single issuer; reloaded when it changes",
    read: readableFile,
  },
  jwtAlgorithms: {
    variable: "PLANTSTORE_JWT_ALGORITHMS",
    help: "accepted signature algorithms, separated by commas",
    fallback: "RS256,PS256,ES256,EdDSA",
    read: listOf(`be a comma-separated list of ${alternatives(jwtAlgorithms)}`, (text) =>
      isJwtAlgorithm(text) ? text : undefined,
    ),
  },
  jwtType: {
    variable: "PLANTSTORE_JWT_TYPE",
    help: "required `typ` of JWTs: any, or at+jwt (RFC 9068)",
    fallback: "any",
    read: oneOf(["any", "at+jwt"]),
  },
  providerScopes: {
    variable: "PLANTSTORE_PROVIDER_SCOPES",
    help: "whether the scopes of tokens from identity providers are ignored or enforced",
    fallback: "ignored",
    read: oneOf(["ignored", "enforced"]),
  },
  jwtScopeClaims: {
    variable: "PLANTSTORE_JWT_SCOPE_CLAIMS",
    help: "JWT claims that contain the scopes, separated by commas",
    fallback: "scope,scp",
    read: texts,
  },
  introspectionUrl: {
    title: "Token introspection",
    variable: "PLANTSTORE_INTROSPECTION_URL",
    help: "introspection endpoint for all other tokens (RFC 7662)",
    read: (text) => {
      const url = providerUrl(text);
      return url === undefined ? withProblems(safeUrl) : parsed(url);
    },
  },
  introspectionClientId: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_ID",
    help: "client id for the introspection endpoint",
    read: parsed,
  },
  introspectionClientSecretFile: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE",
    help: "file with the client secret for the introspection endpoint; reloaded when it changes",
    read: readableFile,
  },
  introspectionAudiences: {
    variable: "PLANTSTORE_INTROSPECTION_AUDIENCES",
    help: "audiences, separated by commas; an introspected token must contain one of them",
    read: texts,
  },
  introspectionSubjectClaim: {
    variable: "PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM",
    help: "claim that identifies the caller if an introspected token has no `sub`, such as `client_id`; by default, these tokens are refused",
    read: parsed,
  },
};

/** Returns a problem for each contradiction between credential settings. `has` returns whether a setting is set. */
export function credentialConflicts(
  { jwtIssuers, jwtKeysUrls, providerScopes }: Partial<CredentialConfiguration>,
  has: (key: keyof CredentialConfiguration) => boolean,
): string[] {
  const introspection = new Set([
    has("introspectionUrl"),
    has("introspectionClientId"),
    has("introspectionClientSecretFile"),
  ]);
  const rules: readonly (readonly [isBroken: boolean, problem: string])[] = [
    [
      has("jwtIssuers") !== has("jwtAudiences"),
      "PLANTSTORE_JWT_ISSUERS and PLANTSTORE_JWT_AUDIENCES must be set together",
    ],
    [
      (has("jwtKeysUrls") || has("jwtKeysFile")) && !has("jwtIssuers"),
      "PLANTSTORE_JWT_KEYS_URLS and PLANTSTORE_JWT_KEYS_FILE require PLANTSTORE_JWT_ISSUERS",
    ],
    [
      jwtIssuers !== undefined && jwtKeysUrls !== undefined && jwtIssuers.length !== jwtKeysUrls.length,
      "PLANTSTORE_JWT_KEYS_URLS must have one URL for each issuer of PLANTSTORE_JWT_ISSUERS, in the same order",
    ],
    [
      has("jwtKeysFile") && (has("jwtKeysUrls") || (jwtIssuers !== undefined && jwtIssuers.length > 1)),
      "PLANTSTORE_JWT_KEYS_FILE requires a single issuer, and must not be combined with PLANTSTORE_JWT_KEYS_URLS",
    ],
    [
      has("jwtScopeClaims") && !(has("jwtIssuers") && providerScopes === "enforced"),
      "PLANTSTORE_JWT_SCOPE_CLAIMS requires PLANTSTORE_JWT_ISSUERS and PLANTSTORE_PROVIDER_SCOPES=enforced",
    ],
    [has("jwtAudienceClaim") && !has("jwtIssuers"), "PLANTSTORE_JWT_AUDIENCE_CLAIM requires PLANTSTORE_JWT_ISSUERS"],
    [
      has("introspectionSubjectClaim") && !has("introspectionUrl"),
      "PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM requires PLANTSTORE_INTROSPECTION_URL",
    ],
    [
      introspection.size > 1,
      "PLANTSTORE_INTROSPECTION_URL, PLANTSTORE_INTROSPECTION_CLIENT_ID and PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE must be set together",
    ],
  ];
  return rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []));
}

/** The settings for credential sources. A server on an exposed address requires at least one credential source. */
export const verifierSettings: readonly Setting<unknown>[] = [
  credentialSettings.tokenHashesFile,
  credentialSettings.tokens,
  credentialSettings.jwtIssuers,
  credentialSettings.introspectionUrl,
];

/** Returns the configured sources for valid tokens. Returns `undefined` without a configured source. */
export function tokenSourcesOf(configuration: CredentialConfiguration): TokenSources | undefined {
  const { tokens, tokenHashesFile, jwtIssuers } = configuration;
  const introspection = introspectionOf(configuration);
  const jwt = jwtIssuers?.map((issuer, index) => jwtSourceOf(issuer, index, configuration));
  const sources = { tokens, tokenHashesFile, jwt, introspection };
  return Object.values(sources).every((source) => source === undefined) ? undefined : sources;
}

/** Returns the setting's name for each source, for messages about an invalid source. */
export function settingNamesOfSources({ jwtKeysFile }: Pick<CredentialConfiguration, "jwtKeysFile">): SourceNames {
  const jwt = jwtKeysFile === undefined ? credentialSettings.jwtIssuers : credentialSettings.jwtKeysFile;
  return {
    tokenHashesFile: credentialSettings.tokenHashesFile.variable,
    jwt: jwt.variable,
    introspection: credentialSettings.introspectionClientSecretFile.variable,
  };
}

/** Returns a short description of the credential sources, for the log. */
export function credentialSourcesOf(configuration: CredentialConfiguration): string {
  const { tokens, tokenHashesFile, jwtIssuers, introspectionUrl } = configuration;
  const sources = [
    tokenHashesFile !== undefined && "token hashes",
    tokens !== undefined && "plain tokens",
    jwtIssuers !== undefined && `JWTs of ${jwtIssuers.join(", ")}`,
    introspectionUrl !== undefined && "introspection",
  ];
  return sources.filter((source) => source !== false).join("; ") || "none";
}

function jwtSourceOf(issuer: string, index: number, configuration: CredentialConfiguration): JwtSource {
  const { jwtAudiences, jwtKeysUrls, jwtKeysFile, jwtType, providerScopes } = configuration;
  return {
    issuer,
    audiences: jwtAudiences ?? [],
    audienceClaim: configuration.jwtAudienceClaim,
    keysUrl: jwtKeysUrls?.[index],
    keysFile: jwtKeysFile,
    algorithms: configuration.jwtAlgorithms,
    type: jwtType,
    enforceScopes: providerScopes === "enforced",
    scopeClaims: configuration.jwtScopeClaims,
  };
}

function introspectionOf(configuration: CredentialConfiguration): IntrospectionSource | undefined {
  const { introspectionUrl: url, introspectionClientId: clientId } = configuration;
  const { introspectionClientSecretFile: clientSecretFile, introspectionAudiences: audiences } = configuration;
  if (url === undefined || clientId === undefined || clientSecretFile === undefined) return undefined;
  const { introspectionSubjectClaim: subjectClaim } = configuration;
  const enforceScopes = configuration.providerScopes === "enforced";
  return { url, clientId, clientSecretFile, audiences, subjectClaim, enforceScopes };
}

function readTokens(text: string): ParseResult<readonly StaticToken[]> {
  const tokens = parsePlainTokens(text);
  return tokens.kind === "value"
    ? parsed(tokens.value)
    : withProblems(`be a comma-separated list of bearer tokens: ${tokens.problems.join(", ")}`);
}

function listOf<T>(
  requirement: string,
  read: (text: string) => T | undefined,
): (text: string) => ParseResult<readonly T[]> {
  return (text) => {
    const items = text.split(",").map((item) => read(item.trim()));
    const valid = items.filter((item) => item !== undefined);
    return valid.length === items.length ? parsed(valid) : withProblems(requirement);
  };
}

function providerUrl(text: string): string | undefined {
  return parseProviderUrl(text).kind === "value" ? text : undefined;
}
