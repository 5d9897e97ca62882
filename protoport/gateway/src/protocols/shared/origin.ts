import type { Exchange } from "../../http/index.ts";

/**
 * Returns whether the page that sent a request may call RPCs. The check protects servers on a developer's machine from
 * DNS rebinding (Streamable HTTP, "Security & Endpoint"). Requests from programs have no `Origin`.
 *
 * The option `cors` lists allowed origins. Pages on loopback may send requests to loopback. This server's own pages are
 * allowed over https, because another name for the server's address would not match the certificate.
 */
export function isOriginAllowed(exchange: Exchange, corsOrigins: readonly string[] | "*" | undefined): boolean {
  const origin = exchange.get("origin");
  if (origin === null || corsOrigins === "*" || corsOrigins?.includes(origin) === true) return true;
  const own = exchange.url.slice(0, exchange.url.length - exchange.target.length);
  return loopback.test(origin) ? loopback.test(own) : own.startsWith("https://") && origin === own;
}

const loopback = /^https?:\/\/(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?$/i;
