import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildLimitMs, type CommandLine, freePort, projectFolder, startNode } from "@protoport/testing";
import { callRpc, type RpcCall, type RpcDefinition } from "../../grpc-js-client.ts";

// Calls protoport/examples/frameworks/nest-grpc.ts over gRPC and REST.

const includeDirs = ["protoport/examples/proto", "protoport/gateway/proto"].map((each) => join(projectFolder, each));
const loaded = loadSync("greenhouse/v1/greenhouse.proto", { includeDirs });
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
const rpcs = loaded["greenhouse.v1.GreenhouseService"] as unknown as Readonly<Record<string, RpcDefinition>>;

let port: number;
let example: CommandLine;
beforeAll(async () => {
  port = await freePort();
  example = startNode([join(projectFolder, "protoport/examples/frameworks/nest-grpc.ts"), String(port)], projectFolder);
  await example.find(/http:\/\//);
}, buildLimitMs);
afterAll(() => example[Symbol.asyncDispose]());
const metadata: RpcCall["metadata"] = [["authorization", "Bearer gardener"]];
const palm = { sensor: "palm", degreesCelsius: 21 };

// oxfmt-ignore
const calls: readonly (RpcCall & { readonly name: string; readonly rpc: string; readonly outcome: object })[] = [
  { name: "the guard admits a caller with the gardener's token", rpc: "GetReading", requests: [{ sensor: "palm" }],
    metadata, outcome: { code: status.OK, messages: [palm] } },
  { name: "the guard refuses a call without a credential", rpc: "GetReading", requests: [{ sensor: "palm" }],
    outcome: { code: status.UNAUTHENTICATED, details: "only gardeners may enter" } },
  { name: "the filter sets an exception's status", rpc: "GetReading", requests: [{ sensor: "door" }], metadata,
    outcome: { code: status.NOT_FOUND, details: "there is no sensor door" } },
  { name: "a handler's observable is sent as a server stream", rpc: "WatchReadings",
    requests: [{ sensor: "palm", count: 2 }], metadata, outcome: { code: status.OK, messages: [palm, palm] } },
  { name: "a handler's subject is sent as a bidirectional stream", rpc: "ControlClimate",
    requests: [{ sensor: "palm", degreesCelsius: 12.5 }], metadata,
    outcome: { code: status.OK, messages: [{ sensor: "palm", heatWatts: 750 }] } },
];

test.each(calls)("nest-grpc.ts: $name over gRPC", async ({ rpc, outcome, ...call }) => {
  const definition = rpcs[rpc];
  if (definition === undefined) throw new Error(`the definition has no ${rpc}`);
  expect(await callRpc(port, definition, call)).toMatchObject(outcome);
});

test.each([
  ["the guard admits a caller with the gardener's token", "palm", { authorization: "Bearer gardener" }, [200, palm]],
  ["the guard refuses a call without a credential", "palm", {}, [401, { code: 16 }]],
  [
    "the filter sets an exception's status",
    "door",
    { authorization: "Bearer gardener" },
    [404, { message: "there is no sensor door" }],
  ],
])("nest-grpc.ts: %s over REST", async (_name, sensor, headers, want) => {
  const response = await fetch(`http://127.0.0.1:${port}/sensors/${sensor}/reading`, { headers });
  expect([response.status, await response.json()]).toMatchObject(want);
});
