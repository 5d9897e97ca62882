import { afterAll, beforeAll } from "vitest";
import type { HttpResponse, HttpRequest, HttpVersion } from "../../../protoport/testing/src/http/exchange.ts";
import { KeptConnections } from "../../../protoport/testing/src/gateway/kept-connections.ts";
import { startPlantServer, type TestPlantServer, type TestPlantServerOptions } from "./plant-server.ts";

/** Starts a plant server before a group's tests and stops it after them. Returns a function that sends it a request. */
export function askPlantServer(
  options: TestPlantServerOptions,
): (version: HttpVersion, request: HttpRequest) => Promise<HttpResponse> {
  const connections = new KeptConnections();
  let server: TestPlantServer;
  beforeAll(async () => void (server = await startPlantServer(options)));
  afterAll(async () => {
    connections[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  return (version, request) => connections.exchange(server.address, version, request);
}
