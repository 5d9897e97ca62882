import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import { exchangeHttp1, exchangeHttp2, type Field, type HttpRequest } from "@protoport/testing/http";
import { authorized, startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";

// An error message may contain part of the request, but at a limited length.

const long = "Q".repeat(7_000);
const maxRepeated = 100;
const rpcPath = "/plantstore.v1.PlantService/DeletePlant";
const rest: HttpRequest = { httpMethod: "DELETE", path: "/plants/7", header: [authorized] };
const withField = (...field: Field): HttpRequest => ({ ...rest, header: [authorized, field] });
const rpc = (type: string, body: string, ...fields: readonly Field[]): HttpRequest => ({
  httpMethod: "POST",
  path: rpcPath,
  header: [authorized, ["content-type", type], ...fields],
  body: Buffer.from(body),
});

const testCases: readonly { readonly name: string; readonly request: HttpRequest }[] = [
  { name: "method", request: { ...rest, httpMethod: long } },
  { name: "path", request: { ...rest, path: `/${long}` } },
  { name: "id in the path", request: { ...rest, path: `/plants/${long}` } },
  { name: "verb in the path", request: { ...rest, path: `/plants/7:${long}` } },
  { name: "query parameter's name", request: { ...rest, path: `/plants/7?${long}=1` } },
  { name: "query parameter's value", request: { ...rest, path: `/plants/7?id=${long}` } },
  { name: "service", request: { ...rpc("application/grpc", ""), path: `/plantstore.v1.${long}/DeletePlant` } },
  { name: "RPC", request: { ...rpc("application/grpc", ""), path: `/plantstore.v1.PlantService/${long}` } },
  { name: "message field's name", request: rpc("application/json", `{"${long}":1}`) },
  { name: "message field's value", request: rpc("application/json", `{"id":"${long}"}`) },
  { name: "content type", request: rpc(`application/${long}`, "{}") },
  { name: "content encoding", request: rpc("application/json", "{}", ["content-encoding", long]) },
  { name: "gRPC encoding", request: rpc("application/grpc", "\u0001\0\0\0\0", ["grpc-encoding", long]) },
  { name: "gRPC timeout", request: rpc("application/grpc", "\0\0\0\0\0", ["grpc-timeout", long]) },
  { name: "Connect timeout", request: rpc("application/json", "{}", ["connect-timeout-ms", long]) },
  { name: "Connect version", request: rpc("application/json", "{}", ["connect-protocol-version", long]) },
  { name: "REST timeout", request: withField("x-server-timeout", long) },
  { name: "idempotency key", request: withField("idempotency-key", long) },
  { name: "request id", request: withField("x-request-id", long) },
  { name: "credential", request: { ...rest, header: [["authorization", `Bearer ${long}`]] } },
  { name: "credential scheme", request: { ...rest, header: [["authorization", long]] } },
  { name: "page origin", request: withField("origin", `https://${long}`) },
];

describe.concurrent("a response", () => {
  let server: TestPlantServer;
  beforeAll(async () => void (server = await startPlantServer({ store: openMemoryStore(new Set()) })));
  afterAll(() => server[Symbol.asyncDispose]());

  test.each(testCases)("never repeats a long $name in full", async ({ request }) => {
    for (const exchange of [exchangeHttp1, exchangeHttp2]) {
      const { httpStatus, header, trailer, body } = await exchange(server.address, request);
      expect(httpStatus).toBeGreaterThan(0);
      const all = [...header, ...trailer].flat().join("\n") + body.toString("latin1");
      expect(all.split("Q").length - 1).toBeLessThan(maxRepeated);
    }
  });
});
