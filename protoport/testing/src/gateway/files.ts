import type { ServiceImpl } from "@connectrpc/connect";
import type { Gateway, GatewayOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-gateway.ts";
import { FileService } from "../gen/files/v1/files_pb.ts";
import type { Address } from "../http/exchange.ts";
import { type Http2Server, listenForTests } from "./listen-for-tests.ts";

/** A gateway with a file service. Dispose of the gateway with `await using`. */
export type TestFiles = AsyncDisposable & { readonly address: Address; readonly gateway: Gateway };

/** Starts a gateway. RPCs without an implementation are unimplemented. */
export async function startFiles(
  http2: Http2Server,
  implementation: Partial<ServiceImpl<typeof FileService>>,
  options: Partial<GatewayOptions> = {},
): Promise<TestFiles> {
  const gateway = createTestGateway({ routes: (router) => router.service(FileService, implementation), ...options });
  const listening = await listenForTests(gateway, { http2 });
  const { address } = listening;
  return { gateway, address, [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose]() };
}
