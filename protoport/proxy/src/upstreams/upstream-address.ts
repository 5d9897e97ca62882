/** A server's address. */
export interface UpstreamAddress {
  readonly scheme: "http" | "https";
  /** The `:authority` of requests (RFC 9113 §8.3.1). */
  readonly authority: string;
  /** A host with a TCP port, or a Unix socket's path. */
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
  /** The name that the certificate must contain, unless {@link UpstreamTls} sets another name. */
  readonly host: string;
  /** Whether the upstream resolves the host. A name may resolve to several servers' addresses. */
  readonly isName: boolean;
}

/**
 * Parses a server's address: `http://host:port` or `https://host:port`, optionally with a trailing slash, `unix:/path`,
 * or `dns:host:port`, which resolves to one or more servers.
 *
 * @param secure - whether `dns:` uses TLS
 * @throws TypeError for an invalid address
 */
export function readUpstreamAddress(text: string, secure: boolean = false): UpstreamAddress {
  // gRPC clients send "localhost" as a Unix socket's authority.
  if (text.startsWith("unix:/")) {
    const target = { path: text.slice(5) };
    return { scheme: "http", authority: "localhost", target, host: "localhost", isName: false };
  }
  // gRPC's name syntax, except that the address cannot name a DNS server, because the system configures DNS.
  const name = /^dns:(?:\/\/\/)?(?!\/)(.+)$/.exec(text)?.[1];
  const address = name === undefined ? text : `${secure ? "https" : "http"}://${name}`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const scheme = url?.protocol === "https:" ? "https" : "http";
  const isAddress = url !== undefined && url.protocol === `${scheme}:` && url.pathname === "/";
  if (!isAddress || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    const examples = "http://127.0.0.1:8080, https://host, dns:host:8080 or unix:/path";
    throw new TypeError(`an upstream address must be a URL such as ${examples}, got "${text}"`);
  }
  const port = url.port === "" ? defaultPorts[scheme] : Number(url.port);
  // `connect` does not accept the brackets around an IPv6 address in a URL.
  const host = url.hostname.replace(/[[\]]/g, "");
  return { scheme, authority: url.host, target: { host, port }, host, isName: name !== undefined };
}

const defaultPorts = { http: 80, https: 443 };

/** Returns an address for messages. A resolved address includes its name, as in `orders:50051 (10.0.0.1)`. */
export function nameAddress({ authority, target, host }: UpstreamAddress): string {
  if ("path" in target) return `unix:${target.path}`;
  return target.host === host ? authority : `${authority} (${target.host})`;
}
