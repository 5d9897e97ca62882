/**
 * Whose request is it?
 *
 * Behind a proxy the connection is the proxy's. This room decides which proxies are believed, and reads what they say
 * about the client: in header fields (RFC 7239 and its predecessors), or at the start of the connection (PROXY
 * protocol). No sockets.
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
