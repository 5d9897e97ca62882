import { createGateway } from "../../../src/gateway/index.ts";
import { StreamService } from "../../gen/streams/v1/stream_service_pb.ts";
import type { Address } from "../carriers/exchange.ts";

/** The content of each piece that is counted. */
export const countedBytes = 16;

/** Starts a gateway with the stream service on a free port of loopback. Dispose of it with `await using`. */
export async function startStreamServer(): Promise<{ readonly address: Address } & AsyncDisposable> {
  const gateway = createGateway({
    routes: (router) =>
      router.service(StreamService, { echo: (pieces) => pieces, count: ({ pieces }) => count(pieces) }),
  });
  const address = await gateway.listen();
  return { address, [Symbol.asyncDispose]: () => gateway.close() };
}

async function* count(pieces: number): AsyncGenerator<{ number: number; content: Uint8Array }> {
  const content = new Uint8Array(countedBytes);
  for (let number = 0; number < pieces; number++) yield { number, content };
}
