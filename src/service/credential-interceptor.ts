import type { Interceptor } from "@connectrpc/connect";
import { type BearerAuth, principalKey } from "@plantstore/auth";

/**
 * Creates a Connect interceptor that checks the bearer metadata of every call, `Authorization: Bearer <token>` (RFC
 * 6750 §2.1), except to open procedures such as health checks.
 *
 * It stores the principal under `principalKey` for the handler. A call with a missing, malformed or invalid token fails
 * with `Unauthenticated`, and one with a token without the required scope fails with `PermissionDenied`; both errors
 * have a challenge in `www-authenticate`. If the token cannot be verified at the moment, the call fails with
 * `Unavailable` and `retry-after`.
 *
 * It works in any Connect server. In the gateway, `admit` of the same {@link BearerAuth} verifies the token and the
 * scope before the body is read, and the interceptor only checks the scope again.
 */
export function createCredentialInterceptor(auth: BearerAuth): Interceptor {
  return (next) => async (request) => {
    const { service, method, header, contextValues } = request;
    const procedure = `/${service.typeName}/${method.name}`;
    if (auth.isOpen(procedure)) return next(request);
    let principal = contextValues.get(principalKey);
    if (principal === undefined) {
      principal = await auth.authenticate(header.get("authorization"));
      contextValues.set(principalKey, principal);
    }
    auth.authorize(principal, procedure);
    return next(request);
  };
}
