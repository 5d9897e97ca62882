/**
 * Finds the client behind proxies.
 *
 * Decides which proxies are trusted, and reads the client's address from their header fields (RFC 7239 and its
 * predecessors) or from the connection's start (PROXY protocol). Uses no sockets.
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
