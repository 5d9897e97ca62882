import type { AdmitRequest } from "@plantstore/gateway";
import { type OptionNames, refusePromise, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { type BearerProblem, readBearerToken } from "./bearer-token.ts";
import { principalKey } from "./principal-context.ts";
import { createCredentialErrors } from "./credential-refusal.ts";
import {
  digestOf,
  type PresentedToken,
  type Principal,
  type TokenOutcome,
  type TokenVerifier,
} from "./token-verifier.ts";

/** The parts of a request that decide about its credential. */
export type CredentialRequest = Pick<AdmitRequest, "procedure" | "authorization" | "connection" | "contextValues">;

/** Options of {@link createBearerAuth}. */
export interface BearerAuthOptions {
  /** The protection space that challenges name (RFC 9110 §11.5). */
  readonly realm: string;
  /** The scope that a procedure requires, or `undefined` for none; called once per procedure. */
  readonly requiredScope?: ((procedure: string) => string | undefined) | undefined;
  /** The procedures (`/pkg.Service/Method`) and whole services (`pkg.Service`) that need no credential. */
  readonly open?: readonly string[] | undefined;
  /** The URL of the RFC 9728 document that challenges point to. */
  readonly resourceMetadata?: string | undefined;
}

const bearerAuthOptionNames: OptionNames<BearerAuthOptions> = {
  realm: required,
  requiredScope: true,
  open: true,
  resourceMetadata: true,
};

/**
 * Requires `Authorization: Bearer <token>` for every request that is not open: by its header alone as the `admit` of a
 * gateway, and step by step for an interceptor.
 *
 * Refusals are `ConnectError`s: `Unauthenticated` and `PermissionDenied` with a challenge in `www-authenticate`, or
 * `Unavailable` with `retry-after` when the token cannot be checked right now. The reason is the error's `cause` (see
 * `credentialRefusalOf`), which stays on the server.
 */
export interface BearerAuth {
  /**
   * Admits a request by its header alone and stores its principal under `principalKey`, or throws, or rejects with, the
   * refusal. A path that matches no procedure needs a credential too.
   */
  admit(this: void, request: CredentialRequest): void | Promise<void>;
  /** Returns whether a procedure may be called without a credential. */
  isOpen(procedure: string): boolean;
  /**
   * Returns the principal of an `Authorization` field value, or throws, or rejects with, the refusal.
   *
   * @param connection - the connection that sent it; its last parsed credential is remembered
   */
  authenticate(authorization: string | null, connection?: object): Principal | Promise<Principal>;
  /** Throws `PermissionDenied` if the principal lacks the scope that the procedure requires. */
  authorize(principal: Principal, procedure: string): void;
}

/** What one procedure requires. */
interface Demand {
  readonly isOpen: boolean;
  readonly scope: string | undefined;
}

/**
 * Creates the {@link BearerAuth} of one realm.
 *
 * @throws TypeError for options that do not exist; RangeError when the realm or the metadata URL contains characters that a header field cannot carry
 */
export function createBearerAuth(verifier: TokenVerifier, options: BearerAuthOptions): BearerAuth {
  refuseUnknownOptions(options, bearerAuthOptionNames, "createBearerAuth");
  const errors = createCredentialErrors(options.realm, options.resourceMetadata);
  const demandOf = createDemands(options);
  const readCredential = createCredentialReader();

  function isOpen(procedure: string): boolean {
    return demandOf(procedure).isOpen;
  }

  function authenticate(authorization: string | null, connection?: object): Principal | Promise<Principal> {
    const credential = readCredential(authorization, connection);
    if ("kind" in credential) throw errors.credential(credential.kind);
    const outcome = verifier.verify(credential);
    // It may be another library's thenable.
    return "then" in outcome ? Promise.resolve(outcome).then(toPrincipal) : toPrincipal(outcome);
  }

  function toPrincipal(outcome: TokenOutcome): Principal {
    if (outcome.kind !== "principal") throw errors.token(outcome);
    return outcome;
  }

  function authorize({ scopes }: Principal, procedure: string): void {
    const { scope } = demandOf(procedure);
    if (scope !== undefined && scopes !== "all" && !scopes.has(scope)) throw errors.scope(scope);
  }

  function admit(request: CredentialRequest): void | Promise<void> {
    const { procedure, authorization, connection } = request;
    // An unknown path needs a credential too; otherwise anyone could find out which paths exist.
    if (procedure !== undefined && isOpen(procedure)) return;
    const principal = authenticate(authorization, connection);
    if (principal instanceof Promise) return principal.then((known) => accept(request, known));
    accept(request, principal);
  }

  function accept({ procedure, contextValues }: CredentialRequest, principal: Principal): void {
    // Set even if the scope is missing, so that the audit line of the refusal can name the caller.
    contextValues.set(principalKey, principal);
    if (procedure !== undefined) authorize(principal, procedure);
  }

  return { admit, isOpen, authenticate, authorize };
}

/**
 * Creates a reader that remembers the last credential of each connection, because clients repeat it with every request.
 *
 * Only the parsed credential is remembered, never whether it is valid: the verifier is asked every time, so nothing
 * needs to be invalidated when tokens, keys or the clock change.
 */
function createCredentialReader(): (
  authorization: string | null,
  connection: object | undefined,
) => PresentedToken | BearerProblem {
  const lastOf = new WeakMap<object, { readonly authorization: string; readonly token: PresentedToken }>();
  return function readCredential(authorization, connection) {
    // bench/auth: 0.1 µs for a token of 900 characters, where its SHA-256 costs 0.8 µs and its syntax 0.5 µs.
    const last = connection && lastOf.get(connection);
    if (last !== undefined && last.authorization === authorization) return last.token;
    const read = readBearerToken(authorization);
    if (read.kind !== "token") return read;
    const digest = digestOf(read.token);
    if (connection === undefined || authorization === null || read.token.length > rememberedCharsMax) {
      return { text: read.token, digest };
    }
    // A copy, because V8 lets a part of a text keep all of it, here the head of the request. The token is its end.
    const own = Buffer.from(authorization, "latin1").toString("latin1");
    const token = { text: own.slice(-read.token.length), digest };
    lastOf.set(connection, { authorization: own, token });
    return token;
  };
}

/** The longest token that is remembered, in characters: anybody may send one and leave the connection idle. */
// Signed tokens with many group claims reach 4 KiB; longer ones are read, and hashed, with each request.
const rememberedCharsMax = 4 * 1024;

function createDemands(options: BearerAuthOptions): (procedure: string) => Demand {
  const open = new Set(options.open);
  // Bounded by the number of procedures: a path that matched nothing has no procedure.
  const demands = new Map<string, Demand>();

  function compute(procedure: string): Demand {
    const service = procedure.slice(1, procedure.lastIndexOf("/"));
    const scope = refusePromise(options.requiredScope?.(procedure), "requiredScope must return its result");
    return { isOpen: open.has(procedure) || open.has(service), scope };
  }

  return function demandOf(procedure) {
    let demand = demands.get(procedure);
    if (demand === undefined) demands.set(procedure, (demand = compute(procedure)));
    return demand;
  };
}
