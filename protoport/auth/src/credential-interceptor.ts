import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { type Principal, principalKey } from "./token-verifier.ts";

/** Checks for a call's credential. */
export interface CredentialChecks {
  /** Returns whether a procedure may be called without a credential. */
  isOpen(procedure: string): boolean;
  /**
   * Returns the principal for an `Authorization` field value. Throws the error of a refusal, or rejects with it.
   *
   * @param connection - the connection on which the last parsed credential is cached
   * @param url - the URL or request path, which determines the metadata document in the challenge
   */
  authenticate(authorization: string | null, connection?: object, url?: string): Principal | Promise<Principal>;
  /** Throws `PermissionDenied` if the principal lacks a scope of the procedure. The challenge depends on `url`. */
  authorize(principal: Principal, procedure: string, url?: string): void;
}

/**
 * Creates a Connect interceptor that checks every call's `Authorization: Bearer <token>` (RFC 6750 §2.1). Calls to open
 * procedures, such as health checks, are not checked. The principal is stored under `principalKey` for the handler.
 *
 * In the gateway, `admit` verifies the token and the scope before the message is read, and the interceptor only checks
 * the scope again.
 *
 * @param requireDefined - throws if an RPC's scopes are not known
 */
export function createCredentialInterceptor(
  auth: CredentialChecks,
  requireDefined: (method: DescMethod) => void,
): Interceptor {
  // Each RPC's string is built once, because V8 would hash a new string in each call's lookup. The map is weak, because
  // a proxy's descriptor reload replaces the methods.
  const procedures = new WeakMap<DescMethod, string>();
  const procedureOf = (method: DescMethod): string => {
    let procedure = procedures.get(method);
    if (procedure === undefined) {
      procedure = `/${method.parent.typeName}/${method.name}`;
      if (!auth.isOpen(procedure)) requireDefined(method);
      procedures.set(method, procedure);
    }
    return procedure;
  };
  return (next) => async (request) => {
    const { method, header, contextValues, url } = request;
    const procedure = procedureOf(method);
    if (auth.isOpen(procedure)) return next(request);
    let principal = contextValues.get(principalKey);
    if (principal === undefined) {
      principal = await auth.authenticate(header.get("authorization"), undefined, url);
      contextValues.set(principalKey, principal);
    }
    auth.authorize(principal, procedure, url);
    return next(request);
  };
}
