import { parsed, unparsed, type Parsed } from "./parsed.ts";

/**
 * Parses the URL of an identity provider.
 *
 * `https`, because whoever can change a key set on its way can make tokens; plain `http` only to the
 * loopback address, where a sidecar or a test listens. Without user name or password: those end up in logs.
 */
export function parseProviderUrl(text: string): Parsed<URL> {
  const url = URL.parse(text);
  if (url === null) return unparsed(`${JSON.stringify(text)} is no URL`);
  if (url.username !== "" || url.password !== "")
    return unparsed("a provider's URL holds no user name and no password");
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
  return isSafe ? parsed(url) : unparsed(`${text} is not https, nor http to the loopback address`);
}

// URL has brought every spelling of an IPv4 address to four decimal numbers.
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}
