import type { Interceptor } from "@connectrpc/connect";
import { credentialsOf } from "./credential.ts";

/**
 * Returns an interceptor that sends a bearer token with every call (RFC 6750 §2.1).
 *
 * @param token - the token, or a function that returns a token for each call. Pass a function if tokens expire. If the
 * function throws, or returns an invalid token, the call fails
 * @throws Error when the token is empty, or contains a character that RFC 6750 does not allow
 */
export function bearer(token: string | (() => string | Promise<string>)): Interceptor {
  const credential = credentialsOf(token);
  return (next) => async (request) => {
    request.header.set("authorization", typeof credential === "string" ? credential : await credential());
    return await next(request);
  };
}
