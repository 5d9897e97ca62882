import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";
import { everyType } from "./results.ts";
import { connectToProxy } from "./typescript-clients.ts";

// A client starts the proxy on its standard input and output, in front of services in other languages.

const selector = "kitchensink.v1.KitchenSink.Create";
const upstreams = echoServers.filter(({ name }) => name === "grpc-go" || name === "grpcio");

test.each(upstreams)("a client that starts the proxy calls a tool of $name", async ({ build }) => {
  await using server = await startGrpcProgram(await build());
  using folder = createTempFolder();
  const descriptors = folder.file("descriptors.binpb");
  writeFileSync(descriptors, descriptorSetOf(...sinkFiles));
  const upstream = ["--upstream", server.address, "--descriptors", descriptors];
  const client = await connectToProxy([...upstream, "--mcp", selector]);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["kitchensink_v1_KitchenSink_Create"]);
  const result = await client.callTool({ name: "kitchensink_v1_KitchenSink_Create", arguments: everyType });
  await client.close();
  expect(result["structuredContent"]).toEqual({ rpc: "Create", sink: everyType });
});
