import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { Admit, AdmitProcedure, AdmitRequest } from "@protoport/gateway";
import { withCode } from "@protoport/gateway/errors";
import type { OpenApiSecurityRequirement } from "@protoport/gateway/openapi";
import { refuseUnknownOptions } from "@protoport/gateway/options";
import { type BearerAuthOptions, bearerAuthOptionNames } from "./bearer-auth-options.ts";
import { type BearerProblem, readBearerToken } from "./bearer-token.ts";
import { type CredentialChecks, createCredentialInterceptor } from "./credential-interceptor.ts";
import {
  digestOf,
  type PresentedToken,
  type Principal,
  principalKey,
  type TokenOutcome,
  type TokenVerifier,
} from "./token-verifier.ts";
import { type CredentialErrors, createCredentialErrors } from "./credential-refusal.ts";
import { isScope } from "./required-scopes.ts";
import { createRequirements } from "./requirements.ts";

/** The properties of a request that authentication reads. */
export type CredentialRequest = Pick<AdmitRequest, "procedure" | "authorization" | "connection" | "contextValues"> &
  Partial<Pick<AdmitRequest, "descriptor" | "path" | "header">>;

/**
 * Requires `Authorization: Bearer <token>` for every request that is not open. Use `admit` in a gateway, and
 * `interceptor` in any other Connect server.
 *
 * Refusals are `ConnectError`s. `Unauthenticated` and `PermissionDenied` have a challenge in `www-authenticate`. If the
 * token cannot be verified right now, the error is `Unavailable` with `retry-after`. The reason is the error's `cause`
 * (see `credentialRefusalOf`), which is never sent to the client.
 */
export interface BearerAuth extends CredentialChecks {
  /**
   * Authenticates and authorizes a request by its header, and stores its principal under `principalKey`. If the request
   * is refused, throws the error or rejects with the error. Requests whose path matches no procedure need a credential
   * too.
   *
   * A request without a procedure, such as an MCP request, is only authenticated. The returned function authorizes the
   * request's procedure. The gateway calls the function as soon as the procedure is known. A function that wraps `admit`
   * must therefore return `admit`'s result.
   *
   * Without `services`, `createGateway` refuses an RPC with the option `required_scopes`, unless `requiredScope` returns
   * the option's scopes. A function that wraps `admit` must have `admit.requireChecked` as a property for this check.
   * If the check has not run, calls to such an RPC fail with `Internal`.
   */
  readonly admit: ((this: void, request: CredentialRequest) => ReturnType<Admit>) & Pick<Admit, "requireChecked">;
  /**
   * Authenticates and authorizes each call. If `admit` has already stored a principal, the interceptor only authorizes
   * the principal again. In a service with the option `required_scopes`, RPCs fail with `Internal` if they are missing
   * in `services` or have other scopes there.
   */
  readonly interceptor: Interceptor;
  /**
   * Returns the option `describeSecurity` for `createOpenApi`. RPCs in `open` need no credential. Any RPC that is not
   * in `open` needs the credential with the name `scheme` in `securitySchemes`, with the RPC's scopes.
   */
  describeSecurity(this: void, scheme: string): (method: DescMethod) => readonly OpenApiSecurityRequirement[];
}

/**
 * Creates a {@link BearerAuth} for one realm.
 *
 * @throws TypeError for an unknown option, an invalid name in `open`, or a missing or invalid option `required_scopes`
 * @throws TypeError for an item in `initialScopes` that no token can have
 * @throws RangeError when the realm or the metadata URL is not printable ASCII
 */
export function createBearerAuth(verifier: TokenVerifier, options: BearerAuthOptions): BearerAuth {
  refuseUnknownOptions(options, bearerAuthOptionNames, "createBearerAuth");
  const errorsFor = createErrors(options);
  const { isOpen, scopesOf, requireChecked, requireDefined } = createRequirements(options);

  function authenticate(
    authorization: string | null,
    connection?: object,
    url?: string,
  ): Principal | Promise<Principal> {
    const credential = readCredential(authorization, connection);
    if ("kind" in credential) throw errorsFor(url).credential(credential.kind);
    const outcome = verifier.verify(credential);
    // Not `instanceof Promise`, because verifiers may return another library's thenable.
    if ("then" in outcome) return Promise.resolve(outcome).then((awaited) => toPrincipal(awaited, url));
    return toPrincipal(outcome, url);
  }

  function toPrincipal(outcome: TokenOutcome, url: string | undefined): Principal {
    if (outcome.kind !== "principal") throw errorsFor(url).token(outcome);
    return outcome;
  }

  function authorize({ scopes }: Principal, procedure: string, url?: string, keepsScopes = false): void {
    const needed = scopesOf(procedure);
    const missing = scopes === "all" ? undefined : needed.find((scope) => !scopes.has(scope));
    if (scopes === "all" || missing === undefined) return;
    throw errorsFor(url).scope(missing, keepsScopes ? withScopes(scopes, needed) : needed);
  }

  function admit(request: CredentialRequest): ReturnType<Admit> {
    const { procedure, authorization, connection, path } = request;
    // An unknown path needs a credential too, because otherwise anyone could probe which paths exist.
    if (procedure !== undefined && isOpen(procedure)) return;
    const principal = authenticate(authorization, connection, path);
    if (principal instanceof Promise) return principal.then((known) => accept(request, known));
    return accept(request, principal);
  }

  function accept(request: CredentialRequest, principal: Principal): void | AdmitProcedure {
    const { procedure, contextValues, path } = request;
    // The principal is set even if the scope is missing, so that the audit log names the refused caller.
    contextValues.set(principalKey, principal);
    // A known procedure is authorized here, so that `admit`'s caller cannot forget the returned function.
    const authorizeNamed = (named: string, method?: DescMethod): void => {
      requireChecked(method);
      if (!isOpen(named)) authorize(principal, named, path, procedure === undefined && replacesScopes(request));
    };
    if (procedure !== undefined) return authorizeNamed(procedure, request.descriptor);
    return authorizeNamed;
  }

  const describeSecurity: BearerAuth["describeSecurity"] = (scheme) => (method) => {
    const procedure = `/${method.parent.typeName}/${method.name}`;
    return isOpen(procedure) ? [] : [{ [scheme]: scopesOf(procedure) }];
  };
  const checks = { isOpen, authenticate, authorize };
  const interceptor = createCredentialInterceptor(checks, requireDefined);
  return { admit: Object.assign(admit, { requireChecked }), interceptor, ...checks, describeSecurity };
}

/** Returns whether MCP clients replace the token's scopes by those of a challenge, as before revision 2026-07-28. */
function replacesScopes({ header }: CredentialRequest): boolean {
  return (header?.get("mcp-protocol-version") ?? "") < "2026-07-28";
}

/** Maximum characters of a challenge's scopes. A client may not accept a larger header. */
const maxScopesLength = 2_000;

/** Returns a token's scopes and the needed ones, or only the needed ones if the challenge would be too long. */
function withScopes(scopes: ReadonlySet<string>, needed: readonly string[]): readonly string[] {
  const all = [...new Set([...[...scopes].filter(isScope), ...needed])];
  return all.join(" ").length <= maxScopesLength ? all : needed;
}

/**
 * Parses a credential. Caches each connection's last one, because clients repeat it with every request. The verification
 * result is not cached, so that changed tokens, keys or clocks need no invalidation.
 */
function readCredential(authorization: string | null, connection: object | undefined): PresentedToken | BearerProblem {
  // bench/auth: a cache hit takes 0.1 µs for 900 characters, SHA-256 0.8 µs, and the syntax check 0.5 µs.
  const cached = connection && CachedCredential.tokenOf(connection, authorization);
  if (cached !== undefined) return cached;
  const read = readBearerToken(authorization);
  if (read.kind !== "token") return read;
  const digest = digestOf(read.token);
  if (connection === undefined || authorization === null || read.token.length > maxCachedChars) {
    return { text: read.token, digest };
  }
  // The header is copied, because a V8 substring would keep the request's whole head alive.
  const copy = Buffer.from(authorization, "latin1").toString("latin1");
  const token = { text: copy.slice(-read.token.length), digest };
  CachedCredential.store(connection, copy, token);
  return token;
}

/** Returns its argument from the constructor, so that a subclass defines its private fields on that object. */
// oxlint-disable-next-line typescript/no-extraneous-class -- only a constructor can define private fields on an object.
class Extended {
  constructor(object: object) {
    return object;
  }
}

/**
 * A private field of a connection's object, which hooks cannot read. The entries of a `WeakMap` would keep the memory of
 * closed connections until the next full garbage collection.
 */
class CachedCredential extends Extended {
  #credential: { readonly authorization: string; readonly token: PresentedToken } | undefined;

  static tokenOf(connection: object, authorization: string | null): PresentedToken | undefined {
    const cached = #credential in connection ? connection.#credential : undefined;
    return cached?.authorization === authorization ? cached?.token : undefined;
  }

  static store(connection: object, authorization: string, token: PresentedToken): void {
    const extended = #credential in connection ? connection : new CachedCredential(connection);
    extended.#credential = { authorization, token };
  }
}

/** Maximum characters in a cached token, to bound memory of idle connections. Tokens with many claims reach 4 KiB. */
const maxCachedChars = 4 * 1024;

/** Returns a lookup from a URL or path to error factories. Challenges name the path's metadata document. */
function createErrors(options: BearerAuthOptions): (url?: string) => CredentialErrors {
  const { realm, resourceMetadata, initialScopes } = options;
  const invalid = initialScopes?.find((scope) => !isScope(scope));
  if (invalid !== undefined) {
    const problem = `option "initialScopes" of createBearerAuth: no token can have the scope "${invalid}"`;
    throw withCode(new TypeError(problem), "ERR_OPTIONS");
  }
  // An empty `scope` is invalid (RFC 6749 §3.3).
  const initialScope = initialScopes?.length === 0 ? undefined : initialScopes?.join(" ");
  const errorsWith = (url: string | undefined): CredentialErrors =>
    createCredentialErrors({ realm, resourceMetadata: url, initialScope });
  if (typeof resourceMetadata !== "object") {
    const errors = errorsWith(resourceMetadata);
    return () => errors;
  }
  const { url: baseUrl, urlsByPath } = resourceMetadata;
  const others = errorsWith(baseUrl);
  const byPath = new Map([...urlsByPath].map(([path, each]) => [path, errorsWith(each)]));
  return (url = "") => {
    const path = URL.canParse(url) ? new URL(url).pathname : url;
    return byPath.get(path) ?? others;
  };
}
