import { headerTooLargeProblem, HttpProblem, urlTooLongProblem } from "./http-problem.ts";
import type { Limits } from "./limits.ts";

/**
 * Enforces {@link Limits.headerBytes} and {@link Limits.urlBytes}, and checks target and authority (RFC 9112 §3.2, RFC
 * 9113 §8.3.1). The target `*` is valid only with OPTIONS. Each HTTP implementation must call this function for each
 * request.
 *
 * @param authority - the value of Host or :authority, or `null` if absent
 * @param listBytes - the size of the field list ({@link CommonHeaderFields.listBytes})
 * @returns the target in origin form, or the problem
 */
export function checkRequestHead(
  httpMethod: string,
  target: string,
  authority: string | null,
  authorityRequired: boolean,
  listBytes: number,
  limits: Limits,
): string | HttpProblem {
  if (listBytes > limits.headerBytes) return headerTooLargeProblem(limits);
  if (target.length > limits.urlBytes) return urlTooLongProblem(limits);
  if (authority === null) {
    if (authorityRequired) return new HttpProblem("ERR_HTTP_INVALID", "the Host header is missing");
  } else if (!authorityGrammar.test(authority))
    return new HttpProblem("ERR_HTTP_INVALID", "the Host header is not valid");
  if (target.includes("#")) return new HttpProblem("ERR_HTTP_INVALID", "the URL must not have a fragment");
  if (target.startsWith("/") || (target === "*" && httpMethod === "OPTIONS")) return target;
  const absolute = absoluteForm.exec(target);
  if (absolute === null || !authorityGrammar.test(absolute[1] ?? ""))
    return new HttpProblem("ERR_HTTP_INVALID", "the request target is not valid");
  // A server must accept a target in absolute form (RFC 9112 §3.2.2). An empty path in an absolute URL means "/".
  const rest = target.slice(absolute[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Returns the authority from a target in absolute form, or otherwise from Host (RFC 9112 §3.2.2). */
export function authorityOf(target: string, host: string | null): string {
  // Nearly every target is in origin form and starts with a slash.
  const absolute = target.startsWith("/") ? undefined : absoluteForm.exec(target)?.[1];
  return absolute ?? host ?? "";
}

// uri-host [ ":" port ] in RFC 9110 §7.2, RFC 3986 §3.2. Two Host fields, joined by ", ", do not match.
const authorityGrammar = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})+)(?::[0-9]{0,5})?$/;
// Matches an absolute URL without userinfo. Recipients should treat userinfo as an error (RFC 9110 §4.2.4).
const absoluteForm = /^https?:\/\/([^/?@]+)(?=[/?]|$)/i;
