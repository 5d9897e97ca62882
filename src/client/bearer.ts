import type { Interceptor } from "@connectrpc/connect";

/**
 * Returns an interceptor that sends a bearer token with every call of a transport (RFC 6750 §2.1).
 *
 * @param token - the token, or where to get it for each call, for tokens that expire; what that throws ends the call
 */
export function bearer(token: string | (() => string | Promise<string>)): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${typeof token === "string" ? token : await token()}`);
    return await next(request);
  };
}
