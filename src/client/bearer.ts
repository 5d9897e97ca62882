import type { Interceptor } from "@connectrpc/connect";

/**
 * Returns an interceptor that sends a bearer token with every call (RFC 6750 §2.1).
 *
 * @param token - the token, or a function that returns it for each call, for tokens that expire; if it throws, the call
 * fails
 */
export function bearer(token: string | (() => string | Promise<string>)): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${typeof token === "string" ? token : await token()}`);
    return await next(request);
  };
}
