/** Where a server is, as a URL says it. */
export interface UpstreamAddress {
  readonly scheme: "http" | "https";
  /** The `:authority` of requests (RFC 9113 §8.3.1). */
  readonly authority: string;
  /** A TCP port, or the path of a Unix socket. */
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
  /** What a certificate must name if {@link UpstreamTls} says nothing. */
  readonly host: string;
  /** Whether the host is a name that may stand for several servers, and is looked up by us. */
  readonly isName: boolean;
}

/**
 * Reads the address of a server: `http://host:port`, `https://host:port` or `unix:/path`, and nothing after it but a
 * slash; or `dns:host:port`, each of whose addresses is a server.
 *
 * @param secure - whether `dns:` means TLS, as it does not say so itself
 * @throws TypeError for anything else
 */
export function readUpstreamAddress(text: string, secure: boolean = false): UpstreamAddress {
  // A Unix socket has no name; what gRPC's clients send as its authority is "localhost".
  if (text.startsWith("unix:/")) {
    const target = { path: text.slice(5) };
    return { scheme: "http", authority: "localhost", target, host: "localhost", isName: false };
  }
  // gRPC's name syntax. A server of DNS, which it may name before the path, is for the system to know.
  const name = /^dns:(?:\/\/\/)?(?!\/)(.+)$/.exec(text)?.[1];
  const address = name === undefined ? text : `${secure ? "https" : "http"}://${name}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const scheme = url?.protocol === "https:" ? "https" : "http";
  const isAddress = url !== undefined && url.protocol === `${scheme}:` && url.pathname === "/";
  if (!isAddress || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    const examples = "http://127.0.0.1:8080, https://host, dns:host:8080 or unix:/path";
    throw new TypeError(`"${text}" is not the address of a server, such as ${examples}`);
  }
  const port = url.port === "" ? defaultPorts[scheme] : Number(url.port);
  // The brackets of an IPv6 address are the URL's.
  const host = url.hostname.replace(/[[\]]/g, "");
  return { scheme, authority: url.host, target: { host, port }, host, isName: name !== undefined };
}

const defaultPorts = { http: 80, https: 443 };

/** Returns what tells an address from others, for errors: `orders:50051 (10.0.0.1)` is one that was looked up. */
export function nameAddress({ authority, target, host }: UpstreamAddress): string {
  return "host" in target && target.host !== host ? `${authority} (${target.host})` : authority;
}
