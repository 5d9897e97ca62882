import type { DescFile } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { echoFiles, echoServers, sinkFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { startProxyProcess } from "../../../../testing/src/gateway/proxy-process.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";
import { everyType } from "./results.ts";
import { connect1, connect2 } from "./typescript-clients.ts";

// Clients of the proxy in front of services in other languages.

const upstreams = echoServers.filter(({ name }) => name === "grpc-go" || name === "grpcio");

/** Returns the flags for a proxy in front of a server. */
function flagsFor(address: string, files: readonly DescFile[], folder: TempFolder): readonly string[] {
  return ["--upstream", address, "--descriptors", folder.write("descriptors.binpb", descriptorSetOf(...files))];
}

test.each(upstreams)("an MCP client of the proxy calls $name through a tool", async ({ build }) => {
  await using server = await startGrpcProgram(await build());
  using folder = createTempFolder();
  const flags = flagsFor(server.address, sinkFiles, folder);
  await using proxy = await startProxyProcess([...flags, "--mcp", "kitchensink.v1.KitchenSink.Create", "--port", "0"]);
  const client = await connect2(`${proxy.baseUrl}/mcp`, "2026-07-28", "");
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["kitchensink_v1_KitchenSink_Create"]);
  const result = await client.callTool({ name: "kitchensink_v1_KitchenSink_Create", arguments: everyType });
  await client.close();
  expect(result["structuredContent"]).toEqual({ rpc: "Create", sink: everyType });
});

test.each(upstreams)("MCP clients get errors and streams from $name, and can cancel calls", async ({ build }) => {
  await using server = await startGrpcProgram(await build());
  using folder = createTempFolder();
  const flags = flagsFor(server.address, echoFiles, folder);
  await using proxy = await startProxyProcess([...flags, "--mcp", "transcoding.v1.*", "--port", "0"]);
  const url = `${proxy.baseUrl}/mcp`;
  for (const client of [await connect2(url, "2026-07-28", ""), await connect1(url, "")]) {
    const failed = await client.callTool({ name: "transcoding_v1_EchoService_Fail", arguments: { code: 9 } });
    expect(failed).toMatchObject({ isError: true, content: [{ text: "FAILED_PRECONDITION: as asked" }] });
    const count = { name: "transcoding_v1_StreamService_Count", arguments: { count: 3 } };
    let progress = 0;
    const result = await client.callTool(count, { onprogress: () => void (progress += 1) });
    const messages = [1, 2, 3].map((index) => ({ index, text: "item" }));
    expect({ messages: result["structuredContent"], progress }).toEqual({ messages: { messages }, progress: 3 });
    const controller = new AbortController();
    const options = { signal: controller.signal, onprogress: () => controller.abort() };
    await expect(client.callTool(count, options)).rejects.toThrow(/abort/i);
    await client.close();
  }
});
