import { matcherOf } from "@protoport/gateway/options";

/** The fields with which one kind of proxy identifies a caller. A name that ends in `*` is a prefix. */
interface IdentityFields {
  /** The proxies that set the fields, as in the documentation. */
  readonly setBy: string;
  readonly names: readonly string[];
}

/**
 * The request fields in which other proxies report a caller's address, user, certificate or token. Anyone can send
 * these fields, so a field is forwarded only if `allow` contains its exact name. The table "Fields that identify a
 * caller" in protoport/docs/reference/proxy-configuration.md shows this list.
 */
export const identityFields: readonly IdentityFields[] = [
  {
    setBy: "most proxies",
    names: ["Forwarded", "X-Forwarded", "X-Forwarded-*", "X-Original-*", "X-Real-IP", "X-Client-IP"],
  },
  { setBy: "load balancers", names: ["Client-IP", "Forwarded-For", "X-Cluster-Client-IP"] },
  {
    setBy: "authenticating proxies",
    names: [
      "Remote-User",
      "Remote-Groups",
      "Remote-Email",
      "Remote-Name",
      "X-Authenticated-*",
      "X-Remote-*",
      "X-User",
      "X-User-Email",
      "X-User-Groups",
      "X-User-ID",
      "X-User-Name",
      "X-User-Role",
      "X-User-Roles",
      "X-Username",
      "X-WebAuth-*",
    ],
  },
  {
    setBy: "mutual TLS",
    names: [
      "Client-Cert",
      "Client-Cert-Chain",
      "X-Client-Cert",
      "X-Client-Cert-*",
      "SSL-Client-*",
      "X-SSL-Cert",
      "X-SSL-Client-*",
    ],
  },
  {
    setBy: "OpenID Connect",
    names: ["OIDC-*", "X-Access-Token", "X-ID-Token", "X-Refresh-Token", "X-Userinfo"],
  },
  {
    setBy: "clients, for the method or path",
    names: ["X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "X-Rewrite-URL"],
  },
  { setBy: "Kubernetes", names: ["Impersonate-*"] },
  { setBy: "Envoy", names: ["X-Envoy-*"] },
  { setBy: "Akamai, Fastly", names: ["True-Client-IP", "Fastly-Client-IP"] },
  {
    setBy: "Cloudflare",
    names: ["CF-Connecting-*", "CF-Pseudo-IPv4", "CF-Access-*", "CF-Cert-*", "CF-Client-Cert-*"],
  },
  { setBy: "Fly", names: ["Fly-Client-IP", "Fly-Forwarded-*"] },
  { setBy: "App Engine", names: ["X-AppEngine-*"] },
  { setBy: "Google IAP", names: ["X-Goog-Authenticated-User-*", "X-Goog-IAP-*"] },
  { setBy: "Google API Gateway", names: ["X-Endpoint-API-UserInfo", "X-Apigateway-API-UserInfo"] },
  { setBy: "AWS ALB", names: ["X-Amzn-OIDC-*", "X-Amzn-MTLS-*"] },
  { setBy: "CloudFront", names: ["CloudFront-Viewer-*"] },
  {
    setBy: "Azure",
    names: ["X-MS-Client-Principal", "X-MS-Client-Principal-*", "X-MS-Token-*", "X-ARR-ClientCert", "X-Azure-*"],
  },
  { setBy: "oauth2-proxy", names: ["X-Auth-Request-*"] },
  { setBy: "Pomerium, Tailscale, authentik", names: ["X-Pomerium-*", "Tailscale-User-*", "X-Authentik-*"] },
  { setBy: "Kong", names: ["X-Anonymous-Consumer", "X-Consumer-*", "X-Credential-Identifier"] },
];

/** Returns whether a field identifies a caller, by its name in lower case. */
export const isIdentityField: (name: string) => boolean = matcherOf(
  identityFields.flatMap(({ names }) => names.map((name) => name.toLowerCase())),
);
