import type { HeaderReader, Peer } from "../exchange/index.ts";
import { type OptionNames, required, requireName } from "../option-checks.ts";
import { type AddressSet, createAddressSet, parsePeer } from "./ip-address.ts";
import { readForwarded } from "./forwarded.ts";

/** Options for the proxies that are trusted to report the client's address. */
export interface TrustedProxiesOptions {
  /** IP addresses and networks, such as `10.0.0.0/8` or `2001:db8::/32`, and `unix:` for all Unix socket peers. */
  readonly addresses: readonly string[];
  /**
   * The header fields that the proxies write. "x-forwarded" means `X-Forwarded-For`, `-Proto` and `-Host`. "forwarded"
   * means `Forwarded` (RFC 7239). "none" is for proxies that use the PROXY protocol. Default "x-forwarded". Only one
   * kind of field can be set. Proxies also forward fields that they do not write, which a client may have forged.
   */
  readonly fields?: "x-forwarded" | "forwarded" | "none";
}

/** All names in {@link TrustedProxiesOptions}. */
export const trustedProxiesNames: OptionNames<TrustedProxiesOptions> = { addresses: required, fields: true };

/** The client of a request, as far as the client is known. */
export interface Client extends Peer {
  /** The scheme that the client used, `http` or `https`, or `undefined` if no proxy reported a scheme. */
  readonly scheme: string | undefined;
  /** The authority that the client requested, or `undefined` if no proxy reported an authority. */
  readonly host: string | undefined;
}

/** The set of trusted proxies. */
export interface TrustedProxies extends AddressSet {
  /**
   * Returns the client of a request: the first address that does not belong to a trusted proxy. The search starts with
   * the connection's peer, and continues from the right end of the list. If an address is unknown, obfuscated or
   * malformed, the client is the last known address.
   */
  clientOf(peer: Peer, header: HeaderReader): Client;
}

/** The values that one proxy reports about a request. */
interface Hop {
  readonly for: string | undefined;
  readonly proto: string | undefined;
  readonly host: string | undefined;
}

/** Maximum proxies through which a request is traced: twice the usual number. Clients may send many items. */
const maxHops = 20;

/** Creates the set of trusted proxies. @throws TypeError with the code ERR_OPTIONS that quotes an invalid value */
export function createTrustedProxies({ addresses, fields = "x-forwarded" }: TrustedProxiesOptions): TrustedProxies {
  requireName(hopReaders, fields, "trustedProxies.fields");
  const addressSet = createAddressSet(addresses);
  const hopsOf = hopReaders[fields];
  return {
    has: (address) => addressSet.has(address),
    clientOf: (peer, header) => {
      let client: Client = { ...peer, scheme: undefined, host: undefined };
      // The peer's address cannot be forged. Values that the peer reports are only used if the peer is a trusted proxy.
      if (!addressSet.has(peer.address)) return client;
      for (const hop of hopsOf(header)) {
        const scheme = schemeOf(hop.proto) ?? client.scheme;
        const host = hostOf(hop.host) ?? client.host;
        const sender = parsePeer(hop.for ?? "");
        client = { ...(sender ?? { address: client.address, port: client.port }), scheme, host };
        if (sender === undefined || !addressSet.has(sender.address)) break;
      }
      return client;
    },
  };
}

type HopReader = (header: HeaderReader) => Iterable<Hop>;

const hopReaders: Readonly<Record<NonNullable<TrustedProxiesOptions["fields"]>, HopReader>> = {
  "x-forwarded": readXForwarded,
  forwarded: readForwardedHops,
  none: () => [],
};

function* readForwardedHops(header: HeaderReader): Generator<Hop> {
  for (const element of readForwarded(header.get("forwarded") ?? "", maxHops)) {
    yield { for: element.get("for"), proto: element.get("proto"), host: element.get("host") };
  }
}

/**
 * Reads the values that the proxies report. Each proxy adds an address to `X-Forwarded-For`. Some proxies also add to
 * `X-Forwarded-Proto` and `X-Forwarded-Host`. Most proxies overwrite `-Proto` and `-Host`, which then have only the
 * nearest proxy's value.
 */
function* readXForwarded(header: HeaderReader): Generator<Hop> {
  const addresses = addressesOf(header.get("x-forwarded-for"));
  const protos = addressesOf(header.get("x-forwarded-proto"));
  const hosts = addressesOf(header.get("x-forwarded-host"));
  const at = (items: readonly string[], hop: number): string | undefined =>
    hop === 0 || items.length === addresses.length ? items[hop] : undefined;
  for (const [hop, address] of addresses.entries()) {
    yield { for: address, proto: at(protos, hop), host: at(hosts, hop) };
  }
  if (addresses.length === 0) yield { for: undefined, proto: protos[0], host: hosts[0] };
}

/** Returns the last items of a list field in reverse order, without empty items (RFC 9110 §5.6.1.2). */
function addressesOf(field: string | null): string[] {
  const items: string[] = [];
  if (field === null) return items;
  for (let end = field.length, remaining = maxHops; end >= 0 && remaining > 0; remaining--) {
    const comma = end === 0 ? -1 : field.lastIndexOf(",", end - 1);
    const item = field.slice(comma + 1, end).trim();
    if (item !== "") items.push(item);
    end = comma;
  }
  return items;
}

function schemeOf(text: string | undefined): string | undefined {
  const scheme = text?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : undefined;
}

// Matches a host name or IP address with an optional port (RFC 3986 §3.2.2, §3.2.3). Userinfo is not accepted.
const authority = /^(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function hostOf(text: string | undefined): string | undefined {
  return text !== undefined && text.length <= maxHostLength && authority.test(text) ? text : undefined;
}

/** Maximum number of characters in a DNS name (RFC 1035 §2.3.4) with a port. */
const maxHostLength = 255 + 6;
