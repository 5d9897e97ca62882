import type { Exchange } from "../http/index.ts";
import { problem } from "../protobuf/index.ts";
import type { Cors } from "./cors.ts";

/**
 * Returns whether a browser may have sent a request without a preflight (Fetch, "CORS-safelisted request-header"), so
 * that CORS does not protect the request. GET and HEAD have no side effects.
 */
export function needsNoPreflight({ httpMethod, common }: Exchange): boolean {
  return httpMethod === "POST" && (common.contentType === null || safelistedType.test(common.contentType));
}

// Browsers ignore malformed parameters. An empty type counts as no type.
const safelistedType = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)?\s*(?:;|$)/i;

/**
 * Refuses a request that a page of another site has sent, perhaps with the cookies of this site. Browsers report the
 * page's site in `Sec-Fetch-Site`, but over HTTP only on loopback, and the page's origin in `Origin`. Other clients
 * send neither.
 *
 * @param ownOrigin - the scheme and authority to which the client has sent the request
 * @throws ConnectError `PermissionDenied`
 */
export function refuseCrossSite(exchange: Exchange, ownOrigin: string, cors: Cors | undefined): void {
  const site = exchange.get("sec-fetch-site");
  if (site === "same-origin" || site === "none") return;
  const origin = exchange.get("origin");
  if (origin !== null && cors?.allows(origin, hasAmbientCredentials(exchange)) === true) return;
  // A proxy that ends TLS changes the scheme. The origin "null" has no host.
  if (site === null && (origin === null || hostOf(origin) === hostOf(ownOrigin))) return;
  throw problem("ERR_CROSS_SITE", "pages of other sites may not send this request", {
    option: "cors.origins or crossSite",
  });
}

/** Returns whether a browser may have added credentials. Only scripts add bearer tokens, after a preflight. */
function hasAmbientCredentials(exchange: Exchange): boolean {
  const authorization = exchange.get("authorization");
  return exchange.get("cookie") !== null || (authorization !== null && !/^bearer\s/i.test(authorization));
}

function hostOf(origin: string): string | undefined {
  return origin.split("//", 2)[1]?.toLowerCase();
}
