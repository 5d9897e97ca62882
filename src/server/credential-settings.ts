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
} from "@protoport/auth";
import { formatted, oneOf, text } from "@protoport/command-line/settings";
import { alternatives, commaSeparated, type PlantSetting, type PlantSettings, readableFile } from "./setting-types.ts";

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

const texts = commaSeparated("a comma-separated list without empty items", (item) => item || undefined);

const plainTokens = text("list", (given) => {
  const tokens = parsePlainTokens(given);
  if (tokens.kind === "value") return tokens.value;
  throw new Error(`must be a comma-separated list of bearer tokens: ${tokens.problems.join(", ")}`);
});

/** The credential settings. */
export const credentialSettings: PlantSettings<CredentialConfiguration> = {
  tokens: {
    title: "Your own tokens",
    variable: "PLANTSTORE_TOKENS",
    about: "plain bearer tokens, separated by commas, for development",
    secret: "hidden",
    type: plainTokens,
  },
  tokenHashesFile: {
    variable: "PLANTSTORE_TOKEN_HASHES_FILE",
    about: "file of token hashes, written by `plantstore token create`",
    type: readableFile,
  },
  jwtIssuers: {
    title: "JSON Web Tokens",
    variable: "PLANTSTORE_JWT_ISSUERS",
    about: "issuers whose JWTs are accepted, separated by commas, spelled exactly as in `iss`",
    type: texts,
  },
  jwtAudiences: {
    variable: "PLANTSTORE_JWT_AUDIENCES",
    about: "audiences, separated by commas; a JWT must contain one of them",
    type: texts,
  },
  jwtAudienceClaim: {
    variable: "PLANTSTORE_JWT_AUDIENCE_CLAIM",
    about:
      "claim that must contain an audience if a JWT has no `aud`: `client_id` for Amazon Cognito; by default, these JWTs are refused",
    type: text(),
  },
  jwtKeysUrls: {
    variable: "PLANTSTORE_JWT_KEYS_URLS",
    about:
      "URLs of the issuers' key sets (JWKS), separated by commas, in the order of the issuers; by default taken from each issuer's metadata",
    type: commaSeparated("a comma-separated list of https URLs, or http URLs of a loopback address", providerUrl),
  },
  jwtKeysFile: {
    variable: "PLANTSTORE_JWT_KEYS_FILE",
    about: "file with the key set (JWKS) of a single issuer; reloaded when it changes",
    type: readableFile,
  },
  jwtAlgorithms: {
    variable: "PLANTSTORE_JWT_ALGORITHMS",
    about: "accepted signature algorithms, separated by commas",
    fallback: ["RS256", "PS256", "ES256", "EdDSA"],
    type: commaSeparated(`a comma-separated list of ${alternatives(jwtAlgorithms)}`, (item) =>
      isJwtAlgorithm(item) ? item : undefined,
    ),
  },
  jwtType: {
    variable: "PLANTSTORE_JWT_TYPE",
    about: "required `typ` of JWTs: any, or at+jwt (RFC 9068)",
    fallback: "any",
    type: oneOf(["any", "at+jwt"]),
  },
  providerScopes: {
    variable: "PLANTSTORE_PROVIDER_SCOPES",
    about: "whether the scopes of tokens from identity providers are ignored or enforced",
    fallback: "ignored",
    type: oneOf(["ignored", "enforced"]),
  },
  jwtScopeClaims: {
    variable: "PLANTSTORE_JWT_SCOPE_CLAIMS",
    about: "JWT claims that contain the scopes, separated by commas",
    fallback: ["scope", "scp"],
    type: texts,
  },
  introspectionUrl: {
    title: "Token introspection",
    variable: "PLANTSTORE_INTROSPECTION_URL",
    about: "introspection endpoint for all other tokens (RFC 7662)",
    type: formatted("URL", "an https URL, or an http URL of a loopback address", providerUrl),
  },
  introspectionClientId: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_ID",
    about: "client id for the introspection endpoint",
    type: text(),
  },
  introspectionClientSecretFile: {
    variable: "PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE",
    about: "file with the client secret for the introspection endpoint; reloaded when it changes",
    type: readableFile,
  },
  introspectionAudiences: {
    variable: "PLANTSTORE_INTROSPECTION_AUDIENCES",
    about: "audiences, separated by commas; an introspected token must contain one of them",
    type: texts,
  },
  introspectionSubjectClaim: {
    variable: "PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM",
    about:
      "claim that identifies the caller if an introspected token has no `sub`, such as `client_id`; by default, these tokens are refused",
    type: text(),
  },
};

/** Returns a problem for each contradiction between credential settings. `has` returns whether a setting is set. */
export function credentialConflicts(
  { jwtIssuers, jwtKeysUrls, providerScopes }: Partial<CredentialConfiguration>,
  has: (key: keyof CredentialConfiguration) => boolean,
): string[] {
  const rules: readonly (readonly [isBroken: boolean, problem: string])[] = [
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
    [
      providerScopes === "enforced" && !has("jwtIssuers") && !has("introspectionUrl"),
      "PLANTSTORE_PROVIDER_SCOPES=enforced requires PLANTSTORE_JWT_ISSUERS or PLANTSTORE_INTROSPECTION_URL",
    ],
  ];
  return rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []));
}

/** The settings for credential sources. A server on an exposed address requires at least one credential source. */
export const verifierSettings: readonly PlantSetting[] = [
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

function providerUrl(url: string): string | undefined {
  return parseProviderUrl(url).kind === "value" ? url : undefined;
}
