import { Code, ConnectError } from "@connectrpc/connect";
import type { Limits } from "./limits.ts";

/** A mistake in a request that does not depend on what it asks for, such as a missing Host. */
export interface HttpProblem {
  readonly httpStatus: number;
  readonly error: ConnectError;
}

/** Returns an {@link HttpProblem} with the code that belongs to its status. */
export function httpProblem(httpStatus: number, message: string): HttpProblem {
  const tooLarge = httpStatus === 413 || httpStatus === 414 || httpStatus === 431;
  return { httpStatus, error: new ConnectError(message, tooLarge ? Code.ResourceExhausted : Code.InvalidArgument) };
}

/** Returns the problem of a header with more bytes than {@link Limits.headerBytes}. */
export function headerTooLarge({ headerBytes }: Pick<Limits, "headerBytes">): HttpProblem {
  return httpProblem(431, `the header fields are larger than ${headerBytes} bytes`);
}

/** Returns the problem of a request target with more bytes than {@link Limits.urlBytes}. */
export function urlTooLong({ urlBytes }: Pick<Limits, "urlBytes">): HttpProblem {
  return httpProblem(414, `the URL is longer than ${urlBytes} bytes`);
}

/**
 * Checks what every request has: target and authority (RFC 9112 §3.2, RFC 9113 §8.3.1).
 *
 * @param target - the request target as sent
 * @param authority - Host or :authority; `null` when absent
 * @returns the target in origin form, or what is wrong
 */
export function readRequestTarget(
  target: string,
  authority: string | null,
  authorityRequired: boolean,
  limits: Limits,
): string | HttpProblem {
  if (target.length > limits.urlBytes) return urlTooLong(limits);
  if (authority === null) {
    if (authorityRequired) return httpProblem(400, "the Host header is missing");
  } else if (!authorityGrammar.test(authority)) return httpProblem(400, "the Host header is not valid");
  if (target.includes("#")) return httpProblem(400, "the URL has a fragment");
  if (target.startsWith("/") || target === "*") return target;
  const absolute = absoluteForm.exec(target);
  if (absolute === null || !authorityGrammar.test(absolute[1] ?? ""))
    return httpProblem(400, "the request target is not valid");
  // RFC 9112 §3.2.2: a server must accept the absolute form; an empty path in it means "/".
  const rest = target.slice(absolute[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Returns the authority of a request: that of a target in absolute form, else its Host (RFC 9112 §3.2.2). */
export function authorityOf(target: string, host: string | null): string {
  // Nearly every target is in origin form, and its first character shows that at no cost.
  const absolute = target.startsWith("/") ? undefined : absoluteForm.exec(target)?.[1];
  return absolute ?? host ?? "";
}

// uri-host [ ":" port ] of RFC 9110 §7.2, RFC 3986 §3.2. Two Host fields, joined by ", ", do not match.
const authorityGrammar = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})+)(?::[0-9]{0,5})?$/;
// Without userinfo, which RFC 9110 §4.2.4 tells recipients to treat as an error.
const absoluteForm = /^https?:\/\/([^/?@]+)(?=[/?]|$)/i;
