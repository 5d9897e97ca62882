import { BlockList, isIP } from "node:net";

// 127.0.0.0/8 and ::1 (RFC 6890). A BlockList also matches IPv4-mapped addresses, which dual-stack sockets report.
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Returns whether a host is local: `unix:` and a path, `localhost` (RFC 6761 §6.3), or a loopback address. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === "localhost" || host.startsWith("unix:")) return true;
  // `check` returns false for any other name, which may resolve to any address.
  return loopback.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");
}
