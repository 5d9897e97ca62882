import type { Interceptor } from "@connectrpc/connect";
import type { AdmitRequest } from "../gateway/index.ts";
import { createCredentialReader } from "./credential-reader.ts";
import { principalKey } from "./principal-context.ts";
import { createCredentialErrors } from "./credential-refusal.ts";
import type { Principal, TokenOutcome, TokenVerifier } from "./token-verifier.ts";

/** The parts of a request that decide about its credential. Only a gateway knows the connection. */
export type CredentialRequest = Pick<AdmitRequest, "procedure" | "authorization" | "contextValues"> & {
  readonly connection?: AdmitRequest["connection"] | undefined;
};

/** Options of {@link createBearerAuth}. */
export interface BearerAuthOptions {
  /** The protection space that challenges name (RFC 9110 §11.5). */
  readonly realm: string;
  /** The scope that a procedure requires, or `undefined` for none; called once per procedure. */
  readonly requiredScope?: ((procedure: string) => string | undefined) | undefined;
  /** What needs no credential: procedures (`/pkg.Service/Method`) and whole services (`pkg.Service`). */
  readonly open?: readonly string[] | undefined;
  /** The URL of the RFC 9728 document that challenges point to. */
  readonly resourceMetadata?: string | undefined;
}

/** The two places where a credential can be checked. */
export interface BearerAuth {
  /** Decides by the headers alone; throws a `ConnectError` to refuse, or rejects with one. */
  readonly admit: (request: CredentialRequest) => void | Promise<void>;
  /** Lets calls pass that `admit` has accepted, and checks the credential itself where no `admit` ran. */
  readonly interceptor: Interceptor;
}

/** What one procedure requires. */
interface Demand {
  readonly credential: boolean;
  readonly scope: string | undefined;
}

// An unknown path needs a credential too; otherwise anyone could find out which paths exist.
const unmatched: Demand = { credential: true, scope: undefined };

/**
 * Creates the check that requires `Authorization: Bearer <token>` for every request that is not open.
 *
 * `admit` is for a server that can decide before it reads the body; the interceptor is always part of the chain. A
 * server without `admit`, such as plain connect-node, gives the same answers through the interceptor alone, with two
 * differences: it has parsed the message by then, and it cannot see a second `Authorization` field, because node:http
 * drops it.
 *
 * Refusals are `ConnectError`s: `Unauthenticated` and `PermissionDenied` with a challenge in `www-authenticate`, or
 * `Unavailable` with `retry-after` when the token cannot be checked right now. The reason is the error's `cause` (see
 * `credentialRefusalOf`), which stays on the server.
 *
 * @throws RangeError when the realm or the metadata URL contains characters that a header field cannot carry
 */
export function createBearerAuth(verifier: TokenVerifier, options: BearerAuthOptions): BearerAuth {
  const errors = createCredentialErrors(options.realm, options.resourceMetadata);
  const demandOf = createDemands(options);
  const readCredential = createCredentialReader();

  function admit(request: CredentialRequest): void | Promise<void> {
    const demand = demandOf(request.procedure);
    if (!demand.credential) return;
    const credential = readCredential(request.authorization, request.connection);
    if (credential.kind !== "presented") throw errors.credential(credential.kind);
    const outcome = verifier.verify(credential.token);
    if (outcome instanceof Promise) return outcome.then((known) => accept(request, demand, known));
    accept(request, demand, outcome);
  }

  function accept(request: CredentialRequest, demand: Demand, outcome: TokenOutcome): void {
    if (outcome.kind !== "principal") throw errors.token(outcome);
    // Set before the scope is checked, so that the audit line of a refusal can name the caller.
    request.contextValues.set(principalKey, outcome);
    if (demand.scope !== undefined && !mayUse(outcome, demand.scope)) throw errors.scope(demand.scope);
  }

  const interceptor: Interceptor = (next) => (request) => {
    const { contextValues, header, method } = request;
    if (contextValues.get(principalKey) !== undefined) return next(request);
    const procedure = `/${method.parent.typeName}/${method.name}`;
    return admitThen({ procedure, authorization: header.get("authorization"), contextValues }, () => next(request));
  };

  async function admitThen<T>(request: CredentialRequest, next: () => Promise<T>): Promise<T> {
    await admit(request);
    return await next();
  }

  return { admit, interceptor };
}

function mayUse(principal: Principal, scope: string): boolean {
  return principal.scopes === "all" || principal.scopes.has(scope);
}

function createDemands(options: BearerAuthOptions): (procedure: string | undefined) => Demand {
  const open = new Set(options.open);
  // Bounded by the number of procedures: a path that matched nothing has no procedure.
  const demands = new Map<string, Demand>();

  function compute(procedure: string): Demand {
    const service = procedure.slice(1, procedure.lastIndexOf("/"));
    const credential = !open.has(procedure) && !open.has(service);
    return { credential, scope: options.requiredScope?.(procedure) };
  }

  return function demandOf(procedure) {
    if (procedure === undefined) return unmatched;
    let demand = demands.get(procedure);
    if (demand === undefined) demands.set(procedure, (demand = compute(procedure)));
    return demand;
  };
}
