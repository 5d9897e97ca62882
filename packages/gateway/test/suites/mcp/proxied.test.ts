import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, test } from "vitest";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { projectFolder } from "../../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";
import { everyType } from "./results.ts";

// A client starts the proxy on its standard input and output, in front of services in other languages.

const main = join(projectFolder, "packages/proxy/src/command/main.ts");
const selector = "kitchensink.v1.KitchenSink.Create";
const upstreams = echoServers.filter(({ name }) => name === "grpc-go" || name === "grpcio");

test.each(upstreams)("a client that starts the proxy calls a tool of $name", async ({ build }) => {
  await using server = await startGrpcProgram(await build());
  using folder = createTempFolder();
  const descriptors = folder.file("descriptors.binpb");
  writeFileSync(descriptors, descriptorSetOf(...sinkFiles));
  const upstream = ["--upstream", server.address, "--descriptors", descriptors];
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, ...upstream, "--mcp", selector, "--mcp-stdio"],
    stderr: "inherit",
  });
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(transport);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["kitchensink_v1_KitchenSink_Create"]);
  const result = await client.callTool({ name: "kitchensink_v1_KitchenSink_Create", arguments: everyType });
  await client.close();
  expect(result.structuredContent).toEqual({ rpc: "Create", sink: everyType });
});
