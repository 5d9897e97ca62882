/**
 * Functions that find the client behind proxies.
 *
 * This module decides which proxies are trusted. The client's address is read from header fields (RFC 7239 and its
 * predecessors), or from the PROXY header at the start of a connection. The module uses no sockets.
 */
export { isAddressOrNetwork, unixAddress } from "./address-set.ts";
export { clientNetwork } from "./ip-address.ts";
export { readProxyHeader } from "./proxy-header.ts";
export {
  type Client,
  createTrustedProxies,
  type TrustedProxies,
  trustedProxiesNames,
  type TrustedProxiesOptions,
} from "./trusted-proxies.ts";
