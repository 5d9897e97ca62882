import { readFileSync } from "node:fs";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, test } from "vitest";
import { GreenhouseServiceService } from "../../../../examples/gen/grpc-js/greenhouse/v1/greenhouse.ts";
import { callRpc, type RpcCall, type RpcDefinition } from "../../../../grpc-handlers/test/grpc-js-client.ts";
import { projectFolder } from "@protoport/testing/process";
import { startExample } from "../../../../testing/src/process/example-server.ts";

// The services in grpc-node's examples, on grpc-js's server and moved to the gateway.

const folder = join(projectFolder, "protoport/examples/grpc-js");

function codeOf(file: string): readonly string[] {
  const lines = readFileSync(join(folder, file), "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("//"));
}

function definitionOf(file: string, service: string): Readonly<Record<string, RpcDefinition>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
  return loadSync(join(folder, file), { keepCase: true })[service] as unknown as Record<string, RpcDefinition>;
}

interface Example {
  readonly name: string;
  readonly methods: Readonly<Record<string, RpcDefinition>>;
  readonly calls: readonly (RpcCall & { readonly method: string; readonly messages: readonly object[] })[];
  /** A unary call over HTTP with JSON. */
  readonly json: { readonly path: string; readonly body: object; readonly response: object };
}

const palmHouse = { latitude: 485_000_000, longitude: 20_000_000 };
const roseGarden = { latitude: 485_100_000, longitude: 20_200_000 };
const nowhere = { latitude: 1, longitude: 1 };
const note = (location: object, message: string): Readonly<Record<string, unknown>> => ({ location, message });

// oxfmt-ignore
const examples: readonly Example[] = [
  { name: "greeter", methods: definitionOf("helloworld.proto", "helloworld.Greeter"),
    calls: [{ method: "SayHello", requests: [{ name: "Ada" }], messages: [{ message: "Hello Ada" }] },
      { method: "SayHelloStreamReply", requests: [{ name: "Ada" }],
        messages: ["Hello", "Welcome", "Goodbye"].map((word) => ({ message: `${word} Ada` })) }],
    json: { path: "helloworld.Greeter/SayHello", body: { name: "Ada" }, response: { message: "Hello Ada" } } },
  { name: "route-guide", methods: definitionOf("route_guide.proto", "routeguide.RouteGuide"),
    calls: [{ method: "GetFeature", requests: [palmHouse], messages: [{ name: "Palm house", location: palmHouse }] },
      { method: "GetFeature", requests: [nowhere], messages: [{ location: nowhere }] },
      { method: "ListFeatures", requests: [{ lo: palmHouse, hi: { latitude: 485_500_000, longitude: 20_500_000 } }],
        messages: [{ name: "Palm house", location: palmHouse }, { name: "Rose garden", location: roseGarden }] },
      { method: "RecordRoute", requests: [palmHouse, nowhere, roseGarden],
        messages: [{ point_count: 3, feature_count: 2, distance: 10_793_953 }] },
      { method: "RouteChat", requests: [note(palmHouse, "first"), note(nowhere, "second"), note(palmHouse, "third")],
        messages: [note(palmHouse, "first")] }], json: { path: "routeguide.RouteGuide/GetFeature", body: palmHouse,
      response: { name: "Palm house", location: palmHouse } } },
];

describe.each(examples)("the example $name", ({ name, methods, calls, json }) => {
  test("moves from grpc-js to the gateway with at most five changed lines", () => {
    const before = codeOf(`${name}-on-grpc-js.js`);
    const after = codeOf(`${name}-on-gateway.js`);
    const changed = after.filter((line) => !before.includes(line));
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.length).toBeLessThanOrEqual(5);
    // All other lines are in an unchanged order.
    expect(after.filter((line) => before.includes(line))).toEqual(before.filter((line) => after.includes(line)));
  });

  test.each(["grpc-js", "gateway"])("responds to a grpc-js client from its %s server", async (server) => {
    await using example = await startExample(`grpc-js/${name}-on-${server}.js`);
    for (const { method, messages, ...call } of calls) {
      const definition = methods[method];
      if (definition === undefined) throw new Error(`the definition has no ${method}`);
      const outcome = await callRpc(example.address.port, definition, call);
      expect([method, outcome]).toMatchObject([method, { code: status.OK, messages }]);
      expect(outcome.messages).toHaveLength(messages.length);
    }
  });

  test("responds to a JSON request from its gateway server", async () => {
    await using example = await startExample(`grpc-js/${name}-on-gateway.js`);
    const response = await fetch(`http://127.0.0.1:${example.address.port}/${json.path}`, {
      method: "POST",
      body: JSON.stringify(json.body),
      headers: { "content-type": "application/json", connection: "close" },
    });
    expect([response.status, await response.json()]).toEqual([200, json.response]);
  });
});

test("greenhouse-ts-proto.ts serves a ts-proto definition over REST and gRPC", async () => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the messages have the types of ts-proto.
  const rpcs = GreenhouseServiceService as unknown as Readonly<Record<string, RpcDefinition>>;
  await using example = await startExample("grpc-js/greenhouse-ts-proto.ts");
  const { port } = example.address;
  const responses = [];
  for (const sensor of ["palm", "door"]) {
    const headers = { connection: "close" };
    const response = await fetch(`http://127.0.0.1:${port}/sensors/${sensor}/reading`, { headers });
    responses.push([response.status, await response.json()]);
  }
  expect(responses).toMatchObject([
    [200, { sensor: "palm", degreesCelsius: 21 }],
    [404, { message: "there is no sensor door" }],
  ]);
  const readings = [12.5, 17.5].map((degreesCelsius) => ({ sensor: "palm", degreesCelsius }));
  const outcomes = [];
  for (const [rpc, requests] of [
    ["waterBed", [{ bed: 2n ** 53n + 1n, liters: 3, note: "dry" }]],
    ["watchReadings", [{ sensor: "palm", count: 2 }]],
    ["recordReadings", readings],
    ["controlClimate", readings],
  ] as const) {
    const definition = rpcs[rpc];
    if (definition === undefined) throw new Error(`the definition has no ${rpc}`);
    outcomes.push((await callRpc(port, definition, { requests })).messages);
  }
  const palm = { sensor: "palm", degreesCelsius: 21 };
  const heat = [750, 250].map((heatWatts) => ({ sensor: "palm", heatWatts }));
  const water = { bed: 2n ** 53n + 1n, liters: 3, note: "dry" };
  expect(outcomes).toEqual([[water], [palm, palm], [{ count: 2, meanDegreesCelsius: 15 }], heat]);
});
