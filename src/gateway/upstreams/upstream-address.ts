/** Where a server is, as a URL says it. */
export interface UpstreamAddress {
  readonly scheme: "http" | "https";
  /** The `:authority` of requests (RFC 9113 §8.3.1). */
  readonly authority: string;
  /** A TCP port, or the path of a Unix socket. */
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
}

/**
 * Reads the address of a server: `http://host:port`, `https://host:port` or `unix:/path`, and nothing after it but a
 * slash.
 *
 * @throws TypeError for anything else
 */
export function readUpstreamAddress(text: string): UpstreamAddress {
  // A Unix socket has no name; what gRPC's clients send as its authority is "localhost".
  if (text.startsWith("unix:/")) return { scheme: "http", authority: "localhost", target: { path: text.slice(5) } };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url?.protocol === "https:" ? "https" : "http";
  const isAddress = url !== undefined && url.protocol === `${scheme}:` && url.pathname === "/";
  if (!isAddress || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    throw new TypeError(`"${text}" is not the address of a server, such as http://127.0.0.1:8080 or https://host`);
  }
  const port = url.port === "" ? defaultPorts[scheme] : Number(url.port);
  // The brackets of an IPv6 address are the URL's.
  return { scheme, authority: url.host, target: { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port } };
}

const defaultPorts = { http: 80, https: 443 };
