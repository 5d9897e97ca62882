import { type ServiceDefinition, status, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { freePort } from "../../testing/src/process/free-port.ts";
import { createGatewayStrategy } from "../src/nestjs.ts";
import { loadGarden } from "./garden.ts";
import { callGarden } from "./grpc-js-client.ts";

// The strategy of a class with the interface of Nest's ServerGrpc. The suite frameworks tests the strategy in Nest.

interface GrpcServerOptions {
  readonly handlers: UntypedServiceImplementation;
}

interface GrpcClient {
  addService(definition: ServiceDefinition, handlers: UntypedServiceImplementation): void;
}

/** A server with a garden. The strategy replaces all methods except `bindEvents`. */
class ServerGrpc {
  readonly options: GrpcServerOptions;
  constructor(options: GrpcServerOptions) {
    this.options = options;
  }
  async bindEvents(): Promise<void> {
    const client = await this.createClient();
    client.addService(loadGarden(), this.options.handlers);
  }
  async createClient(): Promise<GrpcClient> {
    return { addService: () => undefined };
  }
  getMessageHandler(): undefined {
    return undefined;
  }
  async start(): Promise<void> {}
  async close(): Promise<void> {}
}

test("close aborts calls on a separate port after closeTimeoutMs", async () => {
  const port = await freePort();
  const closed = Promise.withResolvers<void>();
  const handlers = { listTrees: () => closed.resolve(strategy.close()) };
  const listen = { host: "127.0.0.1", port };
  const strategy = createGatewayStrategy(ServerGrpc, { handlers }, { listen, closeTimeoutMs: 1 });
  await strategy.start();
  const options = { deadline: Date.now() + 5000 };
  const { code } = await callGarden(port, { method: "ListTrees", options });
  // The connection closes with the call. The client's code depends on which of the two events grpc-js handles first.
  expect([status.UNAVAILABLE, status.INTERNAL]).toContain(code);
  await closed.promise;
});
