import type { DescFile } from "@bufbuild/protobuf";
import type { AdmitRequest } from "../../../gateway/src/index.ts";
// oxfmt-ignore
import { createProxy, type ProxiedUpstreamOptions, type ProxyGateway, type ProxyOptions
} from "../../../proxy/src/create-proxy.ts";
import type { Address } from "../http/exchange.ts";
import { descriptorSetOf } from "./descriptor-set.ts";

/** A proxy on a free loopback port. Dispose of the proxy with `await using`. */
export interface TestProxy {
  readonly proxy: ProxyGateway;
  readonly address: Address;
  readonly baseUrl: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Returns a request that has only the caller's address, for header field rules. */
export const requestFrom = (address: string): AdmitRequest =>
  Object.assign(Object.create(null), { peer: { address }, origin: "http://proxy.example" });

/** Starts a proxy in front of one upstream. */
export async function startProxy(
  upstream: string,
  files: readonly DescFile[],
  {
    upstreamOptions,
    ...options
  }: Partial<ProxyOptions> & { readonly upstreamOptions?: Partial<ProxiedUpstreamOptions> } = {},
): Promise<TestProxy> {
  const descriptors = descriptorSetOf(...files);
  const proxy = await createProxy({ upstreams: [{ upstream, descriptors, ...upstreamOptions }], ...options });
  const address = await proxy.listen({ host: "127.0.0.1", port: 0 });
  const baseUrl = `http://${address.address}:${address.port}`;
  return { proxy, address, baseUrl, [Symbol.asyncDispose]: () => proxy.close() };
}
