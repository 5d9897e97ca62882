import { BlockList, isIP } from "node:net";

// RFC 6890: 127.0.0.0/8 and ::1. To a BlockList, the mapped form of the former, which dual-stack sockets report, is the
// same address.
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/**
 * Returns whether a host can only be reached from this machine: `unix:` and a path, `localhost` (RFC 6761 §6.3), or an
 * address; any other name may resolve to anything.
 */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === "localhost" || host.startsWith("unix:")) return true;
  // `check` is false for what is no address.
  return loopback.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");
}
