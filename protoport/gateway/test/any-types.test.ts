import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createGateway } from "../src/index.ts";
import { KitchenSink, SinkSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { exchangeHttp1, type Field, startKitchenSink } from "@protoport/testing";

const json: readonly Field[] = [["content-type", "application/json"]];
const restPath = "/v1/sinks";
const connectPath = "/kitchensink.v1.KitchenSink/Create";

// Without a registry, an Any may contain every type that is reachable from the services.
describe.each([restPath, connectPath])("without a registry, an Any at %s", (path) => {
  test.each([
    { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a" },
    { "@type": "type.googleapis.com/google.protobuf.Timestamp", value: "2026-11-20T00:00:00Z" },
    { "@type": "type.googleapis.com/google.protobuf.Int64Value", value: "9007199254740993" },
    { "@type": "type.googleapis.com/google.protobuf.Struct", value: { a: [1] } },
    { "@type": "type.googleapis.com/google.protobuf.Empty" },
  ])("with the content %j is accepted and returned", async (any) => {
    await using gateway = await startKitchenSink({ jsonOptions: {} });
    const body = Buffer.from(JSON.stringify({ any }));
    const answer = await exchangeHttp1(gateway.address, { httpMethod: "POST", path, header: json, body });
    expect([answer.httpStatus, JSON.parse(answer.body.toString())]).toMatchObject([200, { sink: { any } }]);
  });

  test("is refused if no service uses its type", async () => {
    await using gateway = await startKitchenSink({ jsonOptions: {} });
    const body = Buffer.from('{"any":{"@type":"type.googleapis.com/x.Y"}}');
    const { httpStatus } = await exchangeHttp1(gateway.address, { httpMethod: "POST", path, header: json, body });
    expect(httpStatus).toBe(400);
  });

  test("with an unknown type in a response is reported only to onFault", async () => {
    const faults: unknown[] = [];
    const any = create(AnySchema, { typeUrl: "type.googleapis.com/secret.Type" });
    const gateway = createGateway({
      routes: (router) => router.service(KitchenSink, { create: () => ({ sink: create(SinkSchema, { any }) }) }),
      onFault: (error) => faults.push(error),
    });
    const address = await gateway.listen();
    const request = { httpMethod: "POST", path, header: json, body: Buffer.from("{}") };
    const { httpStatus, body } = await exchangeHttp1(address, request);
    await gateway.close();
    expect([httpStatus, body.toString()]).toEqual([500, expect.not.stringContaining("secret")]);
    const texts = faults.map((fault) => `${String(fault)} ${String(fault instanceof Error && fault.cause)}`);
    expect(texts).toEqual([expect.stringContaining("secret.Type")]);
  });
});
