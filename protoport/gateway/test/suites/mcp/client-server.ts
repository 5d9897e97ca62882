import { Code, ConnectError } from "@connectrpc/connect";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../src/index.ts";
import { createMcp } from "../../../src/mcp/index.ts";
import { kitchenSinkOptions } from "../../../../testing/src/gateway/kitchen-sink.ts";

/** The clients' credential. */
export const credential = "Bearer gardener";

/** A server for clients. Dispose it with `await using`. */
export type ClientServer = { readonly url: string; cancelled(): Promise<void>; [Symbol.asyncDispose](): Promise<void> };

/** Starts a server with a tool for each kind of RPC, and with every field type. */
export async function startClientServer(): Promise<ClientServer> {
  let cancelled = Promise.withResolvers<void>();
  const gateway = createGateway({
    ...kitchenSinkOptions,
    routes: (router) => {
      router.service(GreenhouseService, {
        getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }),
        waterBed: ({ bed, liters, note }) => {
          if (note === "dry") throw new ConnectError("dry", Code.Aborted);
          return { bed, liters };
        },
        async *watchReadings({ sensor, count }, { signal }) {
          for (let at = 1; at <= count; at += 1) yield { sensor, degreesCelsius: at };
          if (sensor !== "endless") return;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          cancelled.resolve();
        },
      });
      kitchenSinkOptions.routes(router);
    },
    admit: ({ authorization }) => {
      if (authorization === credential) return;
      throw new ConnectError("who are you", Code.Unauthenticated, { "www-authenticate": "Bearer" });
    },
    mcp: createMcp({
      tools: ["greenhouse.v1.*", "kitchensink.v1.KitchenSink.Create"],
      // Stateless clients must repeat the fields in the header, or their calls are refused.
      paramHeaders: { "greenhouse.v1.WaterBedRequest.note": "Note", "greenhouse.v1.WaterBedRequest.liters": "Liters" },
    }),
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async cancelled() {
      await cancelled.promise;
      cancelled = Promise.withResolvers<void>();
    },
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}
