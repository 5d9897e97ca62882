import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions, MethodImpl } from "@connectrpc/connect";
import type { Forwarder } from "../protocols/index.ts";

const forwarderKey = Symbol("forwarder");

/** Registers an RPC with the forwarder for the RPC's calls. @param options - the options for decoding messages */
export function registerForwarder(
  router: ConnectRouter,
  method: DescMethod,
  forwarder: Forwarder,
  options?: Pick<ConnectRouterOptions, "binaryOptions">,
): void {
  // The gateway never calls the handler, but Connect's own router does.
  const handler = Object.assign(
    () => {
      throw new TypeError("a handler was called with the context of another server");
    },
    { [forwarderKey]: forwarder },
  );
  router.rpc(method, handler as MethodImpl<DescMethod>, options);
}

/** Returns the forwarder for a handler's calls, or `undefined` if the gateway calls the handler. */
export function forwarderOf(handler: object): Forwarder | undefined {
  return (handler as { readonly [forwarderKey]?: Forwarder })[forwarderKey];
}
