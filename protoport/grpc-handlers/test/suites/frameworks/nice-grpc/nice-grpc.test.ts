import { createServer, ServerError, Status } from "nice-grpc";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestGateway, listenForTests } from "@protoport/testing";
import { addNiceGrpcService, readServices } from "../../../../src/nice-grpc.ts";
import { loadGarden } from "../../../garden.ts";
import { callGarden, type GardenServer } from "../../../grpc-js-client.ts";
import { generateNiceGarden, niceCases, type NiceGarden } from "../../../nice-cases.ts";

// Handlers that throw nice-grpc's own errors, on its server and on a gateway.

let garden: NiceGarden;
beforeAll(async () => void (garden = await generateNiceGarden()));
afterAll(() => garden[Symbol.dispose]());

function missing(): never {
  throw new ServerError(Status.UNIMPLEMENTED, "no handler");
}

const servers = {
  async "nice-grpc"(handlers: object): Promise<GardenServer> {
    const server = createServer();
    // nice-grpc requires all methods.
    const all = { getTree: missing, addTrees: missing, listTrees: missing, tradeTrees: missing, ...handlers };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-assertion -- nice-grpc may not be installed.
    server.add(garden.definition as never, all as never);
    return { port: await server.listen("127.0.0.1:0"), [Symbol.asyncDispose]: async () => server.forceShutdown() };
  },
  async gateway(handlers: object): Promise<GardenServer> {
    const descriptors = readServices(loadGarden());
    const gateway = createTestGateway({
      routes: (router) => void addNiceGrpcService(router, garden.definition, handlers, { descriptors }),
      onFault: () => {},
    });
    const { address, ...listening } = await listenForTests(gateway);
    return { port: address.port, [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose]() };
  },
} as const;

describe.each(["nice-grpc", "gateway"] as const)("a call on the %s server", (name) => {
  test.each(niceCases)("$name", async ({ handlers, call, outcome, deviation }) => {
    await using server = await servers[name](handlers(ServerError));
    const want = name === "gateway" ? { ...outcome, ...deviation } : outcome;
    expect(await callGarden(server.port, call)).toMatchObject(want);
  });
});
