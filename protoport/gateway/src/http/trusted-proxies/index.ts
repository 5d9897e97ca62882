/**
 * Functions that decide which proxies are trusted, and find the client behind them. The client's address is read from
 * header fields (RFC 7239 and its predecessors), or from the PROXY header. The module uses no sockets.
 */
export { clientNetwork, isAddressOrNetwork, parsePeer, unixAddress } from "./ip-address.ts";
export { readProxyHeader } from "./proxy-header.ts";
export {
  type Client,
  createTrustedProxies,
  type TrustedProxies,
  trustedProxiesNames,
  type TrustedProxiesOptions,
} from "./trusted-proxies.ts";
