import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Configuration } from "./settings.ts";
import { socketPathOf, toConnectHost } from "./setting-types.ts";

/** Milliseconds for a response. A program on the same machine that needs longer is not asked further. */
const responseTimeoutMs = 1_000;

/** Characters of a response that are read. A plant store's probes and errors have fewer. */
const maxResponseLength = 1_024;

/**
 * Returns a warning if another program serves HTTP on the port of a configuration. Asks over HTTP and HTTPS, because a
 * running plant store may have other settings. Returns `undefined` if the port is free, a plant store responds, or the
 * program cannot be known, for example because it speaks no HTTP or expects the PROXY protocol.
 */
export async function describePortUser({
  host,
  port,
  proxyProtocol,
}: Pick<Configuration, "host" | "port" | "proxyProtocol">): Promise<string | undefined> {
  if (socketPathOf(host) !== undefined || port === 0 || proxyProtocol === "on") return undefined;
  // Imports the clients on demand, because `serve` does not need them.
  const clients = await Promise.all([import("node:http"), import("node:https")]);
  const users = await Promise.all(
    clients.map(async ({ get }) => {
      const signal = AbortSignal.timeout(responseTimeoutMs);
      const target = { host: toConnectHost(host), port, path: "/livez", agent: false, rejectUnauthorized: false };
      const responses = once(get({ ...target, signal }), "response", { signal });
      return await responses.then(identify).catch(() => "unknown");
    }),
  );
  if (!users.includes("other") || users.includes("own")) return undefined;
  return `another program uses port ${port}; stop it, or choose another PORT`;
}

/** Returns which program sent a response: a plant store, another one, or an unknown one. */
async function identify([response]: IncomingMessage[]): Promise<"own" | "other" | "unknown"> {
  let text = "";
  for await (const chunk of response?.setEncoding("utf8") ?? []) {
    text += String(chunk);
    if (text.length > maxResponseLength) break;
  }
  // A probe or, with another path prefix, an error record.
  if (/^\{"(?:status":"|error":\d)/.test(text)) return "own";
  // Any server may be overloaded, or refuse a request that it does not expect, such as HTTP on a port with TLS.
  const { statusCode = 0 } = response ?? {};
  return statusCode !== 400 && statusCode < 408 ? "other" : "unknown";
}
