import type { ContextValues, Interceptor } from "@connectrpc/connect";

import { createCredentialReader } from "./credential-reader.ts";
import { principalKey } from "./principal-context.ts";
import { createRefusals } from "./refusal.ts";
import type { Principal, TokenOutcome, TokenVerifier } from "./token-verifier.ts";

/** What `admit` needs to know of a request; a gateway's own type with these members fits. */
export interface AdmitRequest {
  /** `/package.Service/Method`, or `undefined` when the request matched nothing. */
  readonly procedure: string | undefined;
  readonly header: { get(name: string): string | null };
  readonly contextValues: ContextValues;
  /** The same object for every request of one connection, where the gateway can tell. */
  readonly connection?: object | undefined;
}

/** How bearer credentials are asked for. */
export interface BearerAuthOptions {
  /** The protection space that challenges name (RFC 9110 §11.5). */
  readonly realm: string;
  /** The scope a procedure demands, or `undefined` for none; asked once per procedure. */
  readonly requiredScope?: ((procedure: string) => string | undefined) | undefined;
  /** What is answered without a credential: procedures (`/pkg.Service/Method`) and whole services (`pkg.Service`). */
  readonly open?: readonly string[] | undefined;
  /** The URL of the RFC 9728 document that challenges point to. */
  readonly resourceMetadata?: string | undefined;
}

/** The two places at which a credential can be demanded. */
export interface BearerAuth {
  /** Decides on the headers alone; throws a `ConnectError` to refuse, at once or through the promise. */
  admit(request: AdmitRequest): void | Promise<void>;
  /** Lets through what `admit` let through, and decides itself where no `admit` ran. */
  readonly interceptor: Interceptor;
}

/** What one procedure demands. */
interface Demand {
  readonly credential: boolean;
  readonly scope: string | undefined;
}

// What matched nothing needs a credential as well, or whoever has none could learn which paths exist.
const unmatched: Demand = { credential: true, scope: undefined };

/**
 * Returns the guard that demands `Authorization: Bearer <token>` of every request that is not open.
 *
 * `admit` belongs in front of a server that can decide before the body is read; the interceptor
 * belongs into the chain in any case. Under a server that knows no `admit`, such as plain connect-node, the
 * interceptor alone gives the same answers: later, when the message was parsed, and blind for a second
 * `Authorization` field, of which node:http tells no one.
 *
 * Refusals are `ConnectError`s: `Unauthenticated` and `PermissionDenied` with a challenge in
 * `www-authenticate`, `Unavailable` with `retry-after` when the token cannot be checked now. The reason
 * is in the error's `cause` (see `refusalOf`), which stays on the server.
 *
 * @throws RangeError when the realm or the metadata URL cannot stand in a header field
 */
export function bearerAuth(verifier: TokenVerifier, options: BearerAuthOptions): BearerAuth {
  const refusals = createRefusals(options.realm, options.resourceMetadata);
  const demandOf = createDemands(options);
  const readCredential = createCredentialReader();

  function admit(request: AdmitRequest): void | Promise<void> {
    const demand = demandOf(request.procedure);
    if (!demand.credential) return;
    const credential = readCredential(request.header.get("authorization"), request.connection);
    if (credential.kind !== "presented") throw refusals.credential(credential.kind);
    const outcome = verifier.verify(credential.token);
    if (outcome instanceof Promise) return outcome.then((known) => accept(request, demand, known));
    accept(request, demand, outcome);
  }

  function accept(request: AdmitRequest, demand: Demand, outcome: TokenOutcome): void {
    if (outcome.kind !== "principal") throw refusals.token(outcome);
    // Set before the scope is judged: the audit line of a refusal names who was refused.
    request.contextValues.set(principalKey, outcome);
    if (demand.scope !== undefined && !mayUse(outcome, demand.scope)) throw refusals.scope(demand.scope);
  }

  const interceptor: Interceptor = (next) => (request) => {
    const { contextValues, header, method } = request;
    if (contextValues.get(principalKey) !== undefined) return next(request);
    return admitThen({ procedure: `/${method.parent.typeName}/${method.name}`, header, contextValues }, () =>
      next(request),
    );
  };

  async function admitThen<T>(request: AdmitRequest, next: () => Promise<T>): Promise<T> {
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
  // Bounded by the number of procedures that are served: a path that matched nothing has none.
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
