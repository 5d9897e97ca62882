import { createRegistry, isMessage } from "@bufbuild/protobuf";
// oxfmt-ignore
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type Interceptor, type ServiceImpl
} from "@connectrpc/connect";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { FetchGateway, GatewayOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-gateway.ts";
import { KitchenSink, NestedSchema, type Sink, SinkSchema } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_legacy, LegacySink } from "../gen/kitchensink/v1/legacy_pb.ts";
import { GetShelfRequestSchema, Shelves } from "../gen/kitchensink/v1/shelves_pb.ts";
import type { Address } from "../http/exchange.ts";

/** A gateway with the kitchen sink, on a free loopback port. Dispose of the gateway with `await using`. */
export type TestGateway = FetchGateway & { readonly address: Address; [Symbol.asyncDispose](): Promise<void> };

/** The types that a google.protobuf.Any in the kitchen sink may hold. */
export const kitchenSinkRegistry: ReturnType<typeof createRegistry> = createRegistry(
  NestedSchema,
  GetShelfRequestSchema,
  FieldMaskSchema,
  file_kitchensink_v1_legacy,
);

export const kitchenSinkOptions: GatewayOptions = {
  routes: kitchenSinkRoutes,
  jsonOptions: { registry: kitchenSinkRegistry },
};

/** Starts a gateway whose handlers echo their requests. */
export async function startKitchenSink(options: Partial<GatewayOptions> = {}): Promise<TestGateway> {
  const gateway = createTestGateway({ ...kitchenSinkOptions, ...options });
  const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return { address, fetch: gateway.fetch, [Symbol.asyncDispose]: () => gateway.close() };
}

const same = <Request>(request: Request): Request => request;

function kitchenSinkRoutes(router: ConnectRouter): void {
  router.service(KitchenSink, implementation);
  router.service(Shelves, { getShelf: same, chooseShelf: same, updateShelf: same });
  router.service(LegacySink, { keep: (legacy) => legacy, keepAll: (legacies) => legacies });
}

/** Removes the field mask from responses. Requests may have names that no response can express in JSON. */
export const withoutMasks: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const sinks = [response.message, Reflect.get(response.message, "sink")];
  for (const sink of sinks) if (isMessage(sink, SinkSchema)) delete sink.mask;
  return response;
};

type Echoed = { readonly rpc: string; readonly sink: Sink };
const echo = (sink: Sink, context: HandlerContext): Echoed => ({ rpc: context.method.name, sink });

const codeByNumber = new Map<number, Code>(
  Object.values(Code).flatMap((code) => (typeof code === "number" ? [[code, code]] : [])),
);

// oxfmt-ignore
const implementation: ServiceImpl<typeof KitchenSink> = {
  types: echo, query: echo, create: echo, replace: echo, update: echo, segments: echo, matchRest: echo, matchOne: echo,
  matchLiteral: echo, plain: echo, close: echo, custom: echo, any: echo, root: echo, unbound: echo,
  responseNested: (sink) => sink, remove: () => ({}),
  fail: ({ fInt32 }) => {
    throw new ConnectError("as asked", codeByNumber.get(fInt32) ?? Code.Unknown);
  },
};
