import { type IntrospectionSource, jwtAlgorithms, type JwtSource, openOptionProblem } from "@protoport/auth";
import { secret } from "./field-types.ts";
import type { SettingType } from "@protoport/command-line/settings";
import { boolean, formatted, list, mapping, oneOf, publicUrl, record, text } from "@protoport/command-line/settings";

/** Settings for authenticating callers. */
export interface AuthenticationSection {
  readonly realm: string;
  readonly tokens: readonly string[];
  readonly tokenHashesFile?: string;
  readonly jwt: readonly JwtSection[];
  readonly introspection?: IntrospectionSection;
  readonly open: readonly string[];
  readonly publicUrl?: URL;
  /** The scopes that RPCs require, by selector. */
  readonly scopes: Readonly<Record<string, string>>;
  /** The scopes that clients request first. */
  readonly initialScopes?: readonly string[];
  readonly forward: boolean;
}

/** A JSON Web Token issuer, without the members that the proxy sets. */
interface JwtSection extends Required<Omit<JwtSource, "enforceScopes" | "scopeClaims" | "timing">> {
  readonly type: NonNullable<JwtSource["type"]>;
}

/** An introspection endpoint (RFC 7662), without the members that the proxy sets. */
type IntrospectionSection = Required<Omit<IntrospectionSource, "enforceScopes" | "timeoutMs">>;

const jwt = mapping<JwtSection>({
  issuer: { type: text("URL"), required: true, about: "Exact value of `iss`." },
  audiences: { type: list(text()), required: true, about: "`aud` must contain one of these." },
  audienceClaim: {
    type: text("claim"),
    about:
      "Claim that replaces a missing `aud`: `client_id` for Amazon Cognito. Default: tokens without `aud` are refused.",
  },
  keysUrl: { type: text("URL"), about: "URL of the public keys. Default: `jwks_uri` of the issuer." },
  keysFile: { type: text("path"), about: "File of the public keys, read again when it changes." },
  algorithms: {
    type: list(oneOf(jwtAlgorithms)),
    about: "Allowed algorithms. Default: RS256, PS256, ES256 and EdDSA.",
  },
  type: { type: oneOf(["at+jwt", "any"]), fallback: "any", about: "Required `typ` of the token (RFC 9068)." },
});

const introspection = mapping<IntrospectionSection>({
  url: { type: text("URL"), required: true, about: "URL of the endpoint that verifies all other tokens (RFC 7662)." },
  clientId: { type: text(), required: true, about: "The proxy's client id." },
  clientSecretFile: {
    type: text("path"),
    required: true,
    about: "File of the client secret, read again when it changes.",
  },
  audiences: { type: list(text()), about: "`aud` must contain one of these." },
  subjectClaim: {
    type: text("claim"),
    about: "Claim that replaces a missing `sub`, such as `client_id`. Default: tokens without `sub` are refused.",
  },
});

const realm = formatted("text", "printable ASCII", (value) => (/^[\x20-\x7e]*$/.test(value) ? value : undefined));

const openName = text("text", (value) => {
  const problem = openOptionProblem(value);
  if (problem === undefined) return value;
  throw new Error(problem);
});

/** One or more scope-tokens (RFC 6749 §3.3). */
const scope = formatted(
  "scope",
  "scopes of printable ASCII without quotes and backslashes, separated by a space",
  (value) => (/^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(value) ? value : undefined),
);

const oneScope = formatted("scope", "printable ASCII without spaces, quotes and backslashes", (value) =>
  /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value) ? value : undefined,
);

const scopes = record(scope, (name) =>
  /^(?:\w+\.)*(?:\w+\*?|\*)$/.test(name)
    ? undefined
    : "is not the name of an RPC; names are similar to shop.v1.OrderService.GetOrder or shop.v1.*",
);

/** The type for the setting `authentication`. */
export const authenticationType: SettingType<AuthenticationSection> = mapping<AuthenticationSection>({
  realm: { type: realm, fallback: "proxy", about: "Protection space in challenges (RFC 9110 §11.5)." },
  tokens: { type: list(secret), fallback: [], about: "Accepted bearer tokens, of at least 16 characters." },
  tokenHashesFile: { type: text("path"), about: "File of hashes of accepted tokens, read again when it changes." },
  jwt: { type: list(jwt), fallback: [], about: "Issuers of JSON Web Tokens." },
  introspection: { type: introspection, about: "Endpoint that verifies all other tokens (RFC 7662)." },
  open: {
    type: list(openName),
    fallback: [],
    about: "Services (`package.Service`) and RPCs (`/package.Service/Method`) without a credential.",
  },
  publicUrl: {
    type: publicUrl,
    about:
      "Base URL that clients use. Publishes where to obtain tokens, also for `/mcp` (RFC 9728), and names this metadata " +
      "in challenges.",
  },
  scopes: {
    type: scopes,
    fallback: {},
    about:
      "Scopes that RPCs (`package.Service.Method`, `package.*`) require, separated by spaces; the most specific name " +
      "applies. Tokens of `tokens` have every scope. RPCs whose `protoport.auth.v1.required_scopes` names other scopes " +
      "are refused.",
  },
  initialScopes: {
    type: list(oneScope),
    about:
      "Scopes that clients request first, in challenges for requests without a valid token. Default: MCP clients request " +
      "all of `scopes`.",
  },
  forward: { type: boolean, fallback: true, about: "Whether the upstream gets the caller's `Authorization`." },
});
