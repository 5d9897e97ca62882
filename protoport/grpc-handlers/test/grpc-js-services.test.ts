import type { Server, ServiceDefinition } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createGateway } from "../../gateway/src/index.ts";
import { createOpenApi } from "../../gateway/src/openapi/entry.ts";
import { addGrpcJsService, createGrpcJsServices } from "../src/grpc-js.ts";
import { loadFiles } from "./load-files.ts";

// Services that registration code adds as to grpc-js's server.

const files = {
  "common.proto": "package common; message Page { int32 size = 1; Page next = 2; }",
  "shop.proto": `package shop; import "common.proto"; import "google/api/annotations.proto";
    service Orders { rpc List(common.Page) returns (common.Page) { option (google.api.http) = { get: "/orders" }; } }
    service Carts { rpc List(common.Page) returns (common.Page) { option (google.api.http) = { get: "/carts" }; } }`,
  "other.proto": `package other; import "common.proto"; import "google/api/annotations.proto";
    service Stocks { rpc List(common.Page) returns (common.Page) { option (google.api.http) = { get: "/stocks" }; } }`,
};
const definition = { ...loadFiles(files, "shop.proto"), ...loadFiles(files, "other.proto") };
const names = ["shop.Orders", "shop.Carts", "other.Stocks"];
const serviceOf = (name: string): ServiceDefinition => Object(definition)[name];
const handlersOf = (name: string): object => ({
  list: (_call: unknown, callback: (error: null, page: object) => void) => callback(null, { size: name.length }),
});

function register(server: Pick<Server, "addService">): void {
  for (const name of names) server.addService(serviceOf(name), Object(handlersOf(name)));
}

test("services that share a message are served, with one schema for the message", async () => {
  const services = createGrpcJsServices();
  register(services);
  const gateway = createGateway({ routes: services.routes });
  for (const [path, size] of [
    ["/orders", 11],
    ["/carts", 10],
    ["/stocks", 12],
  ] as const)
    expect(await (await gateway.fetch(new Request(`http://localhost${path}`))).json()).toEqual({ size });
  const { components } = createOpenApi(services.services, { info: { title: "Shop", version: "1" } });
  expect(Object.keys(components?.schemas ?? {}).filter((name) => name.includes("Page"))).toEqual(["Page"]);
  expect(services.services).toBe(services.services);
});

test("services get the given descriptors, and other definitions keep their own", () => {
  const [orders] = createServices("shop.Orders").services;
  if (orders === undefined) throw new Error("the definition has no service");
  const services = createGrpcJsServices({ descriptors: [orders] });
  register(services);
  expect(services.services.map(({ typeName }) => typeName)).toEqual(["shop.Orders", "shop.Carts", "other.Stocks"]);
  expect(services.services[0]).toBe(orders);
});

function createServices(name: string): ReturnType<typeof createGrpcJsServices> {
  const services = createGrpcJsServices();
  services.addService(serviceOf(name), Object(handlersOf(name)));
  return services;
}

test("addService is refused after routes was called", () => {
  const services = createServices("shop.Orders");
  createGateway({ routes: services.routes });
  expect(() => services.addService(serviceOf("shop.Carts"), {})).toThrow("call addService before createGateway");
});

test("a definition without descriptors is refused by its service", () => {
  const services = createServices("shop.Orders");
  const { List: list } = serviceOf("shop.Carts");
  const { path, requestStream, responseStream } = Object(list);
  services.addService({ List: Object({ path, requestStream, responseStream }) }, {});
  expect(() => createGateway({ routes: services.routes })).toThrow(
    "the definition of shop.Carts contains no descriptors: set descriptors to the output of buf build -o definition.binpb",
  );
  expect(() => createGateway({ routes: (router) => void addGrpcJsService(router, {}, {}) })).toThrow("no methods");
});
