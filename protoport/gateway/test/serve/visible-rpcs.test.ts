import { create, createRegistry, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../../src/index.ts";
import { waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";
import { isGreenhouse, restrictedServices } from "../../../testing/src/gateway/restricted.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

const greenhouse = restrictedServices().find(isGreenhouse) ?? GreenhouseService;

test.each([
  ["a hidden field in a binary request does not reach the handler", [], { bed: 1n, note: "" }],
  ["an allowed field in a binary request reaches the handler", ["INTERNAL"], { bed: 1n, note: "mine" }],
])("%s", async (_name, allow, want) => {
  const received: object[] = [];
  const gateway = createGateway({
    visibility: { allow },
    routes: (router) => router.service(greenhouse, { waterBed: ({ bed, note }) => (received.push({ bed, note }), {}) }),
  });
  const { input } = greenhouse.method.waterBed;
  const body = new Uint8Array(toBinary(input, create(input, { bed: 1n, note: "mine" })));
  const headers = { "content-type": "application/proto" };
  const response = await gateway.fetch(new Request(`http://a${waterBedProcedure}`, { method: "POST", headers, body }));
  expect([response.status, received]).toEqual([200, [want]]);
});

const note = { "@type": "type.googleapis.com/greenhouse.v1.WaterBedRequest", note: "mine" };
const typesProcedure = "/kitchensink.v1.KitchenSink/Types";

test.each([
  { path: typesProcedure, body: { any: note }, name: "no label", allow: [], status: 400 },
  { path: typesProcedure, body: { any: note }, name: "the label", allow: ["INTERNAL"], status: 200 },
  { path: "/v1/any", body: note, name: "no label", allow: [], status: 400 },
  { path: "/v1/any", body: note, name: "the label", allow: ["INTERNAL"], status: 200 },
])("$path returns $status for a hidden Any field with $name allowed", async ({ path, body, allow, status }) => {
  const selector = "kitchensink.v1.KitchenSink.Types";
  const gateway = createGateway({
    visibility: { allow },
    jsonOptions: { registry: createRegistry(greenhouse.file), ignoreUnknownFields: false },
    rest: { rules: [{ selector, pattern: { case: "post", value: "/v1/any" }, body: "any" }] },
    routes: (router) => router.service(KitchenSink, { types: () => ({}) }),
  });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  expect((await gateway.fetch(new Request(`http://a${path}`, init))).status).toBe(status);
});

test.each(["/v1/sinks", "/kitchensink.v1.KitchenSink/Create"])(
  "the response at %s has no hidden Any field",
  async (path) => {
    const { input } = greenhouse.method.waterBed;
    const any = anyPack(input, create(input, { bed: 1n, note: "mine" }));
    const routes: GatewayOptions["routes"] = (router) =>
      router.service(KitchenSink, { create: () => ({ sink: { any } }) });
    const jsonOptions = { registry: createRegistry(greenhouse.file) };
    const gateway = createGateway({ visibility: { allow: [] }, jsonOptions, routes });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    const { sink } = Object(await (await gateway.fetch(new Request(`http://a${path}`, init))).json());
    expect(sink.any).toEqual({ "@type": "type.googleapis.com/greenhouse.v1.WaterBedRequest", bed: "1" });
  },
);

/** Creates a gateway with two RPCs, whose descriptors are from two files with one name. */
const createFromTwoFiles = (other: typeof GreenhouseService): Gateway =>
  createGateway({
    visibility: { allow: ["INTERNAL"] },
    routes: (router) => router.rpc(other.method.waterBed, () => ({})).rpc(greenhouse.method.getReading, () => ({})),
  });

test("two equal files with one name keep the HTTP rules of both", async () => {
  const gateway = createFromTwoFiles(restrictedServices().find(isGreenhouse) ?? GreenhouseService);
  const watered = await gateway.fetch(new Request("http://a/beds/1:water", { method: "POST" }));
  expect([watered.status, (await gateway.fetch(new Request("http://a/sensors/1/reading"))).status]).toEqual([200, 200]);
});

test("two files with one name are refused if only their custom options differ", () => {
  const other = restrictedServices().find(isGreenhouse) ?? GreenhouseService;
  const { options } = other.method.waterBed.proto;
  if (options !== undefined) options.$unknown = [];
  const message = "file greenhouse/v1/greenhouse.proto is defined more than once with different contents";
  expect(() => createFromTwoFiles(other)).toThrow(expect.objectContaining({ code: "ERR_DESCRIPTORS", message }));
});

test("hiding fields in details does not change the thrown error", async () => {
  const value = { bed: 1n, note: "mine" };
  const details = [{ desc: greenhouse.method.waterBed.output, value }];
  const thrown = new ConnectError("no bed", Code.NotFound, { "x-bed": "1" }, details);
  const reported: ConnectError[] = [];
  const gateway = createGateway({
    visibility: { allow: [] },
    onError: (_request, error) => void reported.push(error),
    routes: (router) =>
      router.service(greenhouse, {
        waterBed: () => {
          throw Object.freeze(thrown);
        },
      }),
  });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
  const response = await gateway.fetch(new Request(`http://a${waterBedProcedure}`, init));
  expect([response.status, response.headers.get("x-bed")]).toEqual([404, "1"]);
  expect(await response.json()).toMatchObject({ message: "no bed", details: [{ value: "CAE" }] });
  expect(thrown.details).toMatchObject([{ value }]);
  const visible = [{ value: Uint8Array.of(8, 1) }];
  expect(reported).toMatchObject([{ code: Code.NotFound, stack: thrown.stack, details: visible }]);
});
