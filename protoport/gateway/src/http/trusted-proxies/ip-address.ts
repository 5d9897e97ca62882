import { BlockList, isIP, SocketAddress } from "node:net";
import type { Peer } from "../exchange/index.ts";
import { withCode } from "../problems.ts";

/**
 * Returns an IP address in canonical form (RFC 5952). IPv4 addresses that are mapped into IPv6 (RFC 4291 §2.5.5.2) are
 * returned as IPv4. Returns `undefined` for other strings. An address with a zone is also refused, because a zone is
 * valid only on one machine.
 */
export function toIpAddress(text: string): string | undefined {
  if (isIP(text) === 4) return text;
  if (isIP(text) !== 6 || text.includes("%")) return undefined;
  const { address } = new SocketAddress({ address: text, family: "ipv6" });
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  return mapped ?? address;
}

// An IPv6 address is in brackets (RFC 7239 §6). In X-Forwarded-For, an IPv6 address without brackets is also allowed,
// but has no port.
const withBrackets = /^\[([0-9A-Fa-f:.]+)\](?::(\d{1,5}))?$/;
const ipv4WithPort = /^(\d+\.\d+\.\d+\.\d+)(?::(\d{1,5}))?$/;

/** Parses `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711` or `2001:db8::1`, or returns `undefined`. */
export function parsePeer(text: string): Peer | undefined {
  const [, host = text, port = "0"] = withBrackets.exec(text) ?? ipv4WithPort.exec(text) ?? [];
  const address = toIpAddress(host);
  return address === undefined || Number(port) > maxPort ? undefined : { address, port: Number(port) };
}

/** The largest port of TCP (RFC 9293 §3.1). */
export const maxPort = 65_535;

/**
 * Returns the part of an address that identifies a client: the complete IPv4 address, or the first 64 bits of an IPv6
 * address. A single machine may use all IPv6 addresses with the same 64 bits (RFC 4291 §2.5.1). Returns any other
 * string unchanged.
 */
export function clientNetwork(text: string): string {
  const address = toIpAddress(text);
  if (address === undefined || !address.includes(":")) return address ?? text;
  const [front = "", back = ""] = address.split("::");
  const groupsBefore = front === "" ? [] : front.split(":");
  const groupsAfter = back === "" ? [] : back.split(":");
  const zeros = Array<string>(Math.max(0, groups - groupsBefore.length - groupsAfter.length)).fill("0");
  return `${[...groupsBefore, ...zeros, ...groupsAfter].slice(0, groups / 2).join(":")}::/64`;
}

/** Number of 16-bit groups in an IPv6 address. */
const groups = 8;

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
