import { BlockList, isIP } from "node:net";
import { withCode } from "../errors/index.ts";
import { toIpAddress } from "./ip-address.ts";

/** A set of IP addresses. */
export interface AddressSet {
  has(address: string): boolean;
}

/** The address of all peers on a Unix socket, because these peers have no IP address. */
export const unixAddress = "unix:";

/**
 * Creates a set of IP addresses. Entries are addresses, networks (`10.0.0.0/8`, `2001:db8::/32`, RFC 4632 §3.1), and
 * {@link unixAddress}.
 *
 * @throws TypeError with the code ERR_OPTIONS that quotes the first entry that is neither an address nor a network
 */
export function createAddressSet(entries: readonly string[]): AddressSet {
  const list = new BlockList();
  for (const entry of entries) if (entry !== unixAddress) add(list, entry);
  const hasUnix = entries.includes(unixAddress);
  return {
    has: (text) => {
      if (text === unixAddress) return hasUnix;
      const address = toIpAddress(text);
      return address !== undefined && list.check(address, familyOf(address));
    },
  };
}

/** Returns whether a string is an IP address, a network such as `10.0.0.0/8`, or {@link unixAddress}. */
export function isAddressOrNetwork(text: string): boolean {
  return text === unixAddress || parseNetwork(text) !== undefined;
}

function add(list: BlockList, entry: string): void {
  const network = parseNetwork(entry);
  if (network === undefined)
    throw withCode(
      new TypeError(`trustedProxies.addresses must be IP addresses or networks, got "${entry}"`),
      "ERR_OPTIONS",
    );
  list.addSubnet(network.address, network.prefix, familyOf(network.address));
}

function parseNetwork(text: string): { readonly address: string; readonly prefix: number } | undefined {
  const [, host = "", length] = /^([0-9A-Fa-f:.]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = toIpAddress(host);
  if (address === undefined) return undefined;
  const bits = familyOf(address) === "ipv4" ? 32 : 128;
  // An IPv4 network that is mapped into IPv6 must be written as IPv4.
  const prefix = length === undefined ? bits : Number(length);
  return prefix > bits ? undefined : { address, prefix };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
