import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { CompactSign, exportJWK, generateKeyPair, type CryptoKey, type JWK } from "jose";
import { listenOnLoopback } from "../http/listen-on-loopback.ts";

export interface SigningKey {
  readonly algorithm: string;
  readonly keyId: string;
  readonly privateKey: CryptoKey;
  /** The public key as in a key set. */
  readonly jwk: JWK;
}

/** An identity provider on the loopback address, as a real HTTP server whose responses a test can replace. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly keysUrl: string;
  readonly requests: readonly string[];
  keys: readonly SigningKey[];
  /** Paths for which the provider responds with 404. */
  hidden: readonly string[];
  /** Handles requests instead of the provider. `undefined` lets the provider handle requests. */
  respond: RequestListener | undefined;
  nextRequest(): Promise<string>;
  /** Signs a token. Claims and header fields replace those of a valid token. `undefined` omits a claim or field. */
  sign(claims?: TestClaims, header?: TestHeader, key?: SigningKey): Promise<string>;
  stop(): void;
  [Symbol.dispose](): void;
}

/** Claims in addition to the default claims, or the complete payload as a string. */
export type TestClaims = Readonly<Record<string, unknown>> | string;
/** Protected header members in addition to `alg` and `kid`. */
export type TestHeader = Readonly<Record<string, unknown>>;
/** A header parameter that a token may list as critical, and that no verifier knows. */
export const testExtension = "urn:example:extension";
/** The audience that signed tokens have by default. */
export const testAudience = "https://orders.example";

export async function createSigningKey(algorithm: string, keyId: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { algorithm, keyId, privateKey, jwk: { ...(await exportJWK(publicKey)), kid: keyId, use: "sig" } };
}

interface ProviderPaths {
  /** The issuer's path: "" or "/realms/orders". */
  readonly issuer: string;
  readonly keys: string;
}

/** Starts a provider that publishes keys at `/keys`, with discovery at both well-known paths. */
export const startIdentityProvider = async (...keys: readonly SigningKey[]): Promise<IdentityProvider> =>
  await startIdentityProviderAt({ issuer: "", keys: "/keys" }, ...keys);

/** Starts a provider with custom paths, such as the paths in a product. */
export async function startIdentityProviderAt(
  paths: ProviderPaths,
  ...keys: readonly SigningKey[]
): Promise<IdentityProvider> {
  const requests: string[] = [];
  const waiting: ((path: string) => void)[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    for (const resolve of waiting.splice(0)) resolve(path);
    if (provider.respond === undefined) respondByDefault(provider, request, response);
    else provider.respond(request, response);
  });
  const baseUrl = await listenOnLoopback(server);
  const issuer = `${baseUrl}${paths.issuer}`;

  function stop(): void {
    server.close();
    server.closeAllConnections();
  }

  // oxfmt-ignore
  const provider: IdentityProvider = {
    issuer, keysUrl: `${baseUrl}${paths.keys}`, requests, keys, hidden: [], respond: undefined,
    nextRequest: () => new Promise((resolve) => waiting.push(resolve)),
    sign: (claims = {}, header = {}, key = firstOf(provider.keys)) => sign(issuer, key, claims, header), stop,
    [Symbol.dispose]: stop,
  };
  return provider;
}

function respondByDefault(
  { issuer, keysUrl, keys, hidden }: IdentityProvider,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const issuerPath = new URL(issuer).pathname.replace(/\/$/, "");
  const documents: Record<string, object> = {
    [new URL(keysUrl).pathname]: { keys: keys.map(({ jwk }) => jwk) },
    // OpenID Connect Discovery appends the well-known path to the issuer's path, and RFC 8414 puts it in front.
    [`${issuerPath}/.well-known/openid-configuration`]: { issuer, jwks_uri: keysUrl },
    [`/.well-known/oauth-authorization-server${issuerPath}`]: { issuer, jwks_uri: keysUrl },
  };
  const path = request.url ?? "";
  // Requests must be GET, and prefer the document's media type (RFC 7517 §8.5).
  const type = path === new URL(keysUrl).pathname ? "application/jwk-set+json" : "application/json";
  const isAccepted = request.method === "GET" && request.headers.accept?.startsWith(type) === true;
  const document = !isAccepted || hidden.includes(path) ? undefined : documents[path];
  response.writeHead(document === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(document ?? {}));
}

async function sign(issuer: string, key: SigningKey, claims: TestClaims, header: TestHeader): Promise<string> {
  const nowS = Math.floor(Date.now() / 1000);
  const usual = { iss: issuer, sub: "ada", aud: testAudience, iat: nowS, exp: nowS + 300 };
  const payload = typeof claims === "string" ? claims : JSON.stringify({ ...usual, ...claims });
  return await new CompactSign(Buffer.from(payload))
    .setProtectedHeader({ alg: key.algorithm, kid: key.keyId, ...header })
    .sign(key.privateKey, { crit: { [testExtension]: true } });
}

function firstOf(keys: readonly SigningKey[]): SigningKey {
  const [first] = keys;
  if (first === undefined) throw new Error("the provider has no key");
  return first;
}
