import { truncateSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { createFileRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService } from "@protoport/testing/proxy";
import type { ProxiedUpstreamOptions, ProxyGateway, ReloadReport } from "../../../../src/create-proxy.ts";
import { createProxy, createUpstream } from "../../../../src/create-proxy.ts";
import { createGrpcTransport } from "../../../../src/client/index.ts";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { StreamService } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTempFolder } from "@protoport/testing/process";

test("reflection is read every reloadEveryMs, and only changes are reported", async () => {
  let listed: readonly DescService[] = [GreenhouseService, ServerReflection];
  let reads = 0;
  const upstream = createGateway({
    routes: (router) =>
      void router.service(ServerReflection, {
        serverReflectionInfo: (requests, context) => {
          reads += Number(context.requestHeader.get("x-ask"));
          return createReflectionService(listed).serverReflectionInfo(requests, context);
        },
      }),
  });
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  const reports: ReloadReport[] = [];
  const upstreamOptions = { reloadEveryMs: 20, reflectionHeader: { "x-ask": "1" } };
  const proxy = await createProxy({
    upstreams: [{ upstream: `http://127.0.0.1:${String(port)}`, descriptors: "reflection", ...upstreamOptions }],
    onReload: (report) => void reports.push(report),
  });
  try {
    expect(proxy.services.map(({ typeName }) => typeName)).toEqual([GreenhouseService.typeName]);
    await expect.poll(() => reads).toBeGreaterThan(3);
    expect(reports).toEqual([]);
    listed = [GreenhouseService, StreamService, ServerReflection];
    await expect.poll(() => reports.length).toBe(1);
    // Listing services in another order is not a change.
    listed = listed.toReversed();
    const readsBefore = reads;
    await expect.poll(() => reads).toBeGreaterThan(readsBefore + 2);
    expect(reports.length).toBe(1);
    expect(reports[0]).toMatchObject({ removed: [], problems: [] });
    expect(reports[0]?.added).toContain(`/${StreamService.typeName}/${StreamService.methods[0]?.name}`);
    listed = [];
    await expect.poll(() => reports.at(-1)?.problems).not.toEqual([]);
    expect(proxy.services.length).toBe(2);
  } finally {
    await proxy.close();
    await upstream.close();
  }
});

/** {@link StreamService} in a file that is larger than the calls' message limit. */
function largeStreamService(): DescService {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf(StreamService.file));
  set.file.at(-1)?.messageType[0]?.reservedName.push("x".repeat(5_000_000));
  return createFileRegistry(set).getService(StreamService.typeName) ?? StreamService;
}

/** Starts a server with reflection, and counts how often its reflection was read. */
async function startReflecting(services: readonly DescService[], path: string) {
  const counts = { reads: 0 };
  const gateway = createGateway({
    routes: (router) => {
      router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor }) });
      router.service(ServerReflection, {
        serverReflectionInfo: (requests, context) => {
          counts.reads++;
          return createReflectionService(services).serverReflectionInfo(requests, context);
        },
      });
    },
  });
  await gateway.listen({ path });
  return { counts, [Symbol.asyncDispose]: () => gateway.close() };
}

test("reflection is read again when calls reach new servers", async () => {
  const reports: ReloadReport[] = [];
  using folder = createTempFolder();
  const path = folder.file("upstream.sock");
  await using old = await startReflecting([GreenhouseService], path);
  await using upstream = createUpstream({ addresses: `unix:${path}` });
  const create = (): Promise<ProxyGateway> =>
    createProxy({
      upstreams: [{ upstream, descriptors: "reflection" }],
      onReload: (report) => void reports.push(report),
    });
  // A closed proxy reads nothing.
  await (await create()).close();
  const proxy = await create();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => proxy.close());
  const call = async () => (await proxy.fetch(new Request("http://localhost/sensors/a/reading"))).status;
  await expect.poll(call).toBe(200);
  await old[Symbol.asyncDispose]();
  // Each proxy reads once, because a lost server causes no read until calls reach another server.
  expect(old.counts.reads).toBe(2);
  const beganAtMs = performance.now();
  const next = await startReflecting([GreenhouseService, largeStreamService()], path);
  await expect.poll(call).toBe(200);
  await expect.poll(() => reports.length).toBe(1);
  expect(reports[0]).toMatchObject({ removed: [], problems: [] });
  expect(reports[0]?.added).toContain(`/${StreamService.typeName}/${StreamService.methods[0]?.name}`);
  expect(next.counts.reads).toBe(1);
  await next[Symbol.asyncDispose]();
  const last = await startReflecting([GreenhouseService], path);
  await expect.poll(call).toBe(200);
  await expect.poll(() => reports.length).toBe(2);
  expect(reports[1]?.removed).toContain(`/${StreamService.typeName}/${StreamService.methods[0]?.name}`);
  expect(last.counts.reads).toBe(1);
  // A second after the previous read. A timer may fire slightly early.
  expect(performance.now() - beganAtMs).toBeGreaterThan(990);

  // A closed proxy makes neither the pending read nor reads for later servers.
  await last[Symbol.asyncDispose]();
  const other = await startReflecting([StreamService], path);
  await expect.poll(call).toBe(200);
  await proxy.close();
  await other[Symbol.asyncDispose]();
  stack.use(await startReflecting([StreamService], path));
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream }));
  await expect.poll(() => greenhouse.getReading({ sensor: "a" }).then(({ sensor }) => sensor)).toBe("a");
  await pause(1_100);
  expect(reports.length).toBe(2);
});

test("an https: descriptor URL and timeouts out of range are rejected", async () => {
  const upstream = "http://127.0.0.1:1";
  const create = (more: Omit<ProxiedUpstreamOptions, "upstream">): Promise<unknown> =>
    createProxy({ upstreams: [{ upstream, ...more }] });
  await expect(create({ descriptors: new URL("https://a/b") })).rejects.toThrow("The URL must be of scheme file");
  for (const [name, least] of [
    ["timeoutMs", 0],
    ["maxTimeoutMs", 1],
  ] as const) {
    for (const value of [least - 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const created = create({ descriptors: new Uint8Array(), [name]: value });
      await expect(created).rejects.toThrow(`${name} must be between ${least}`);
    }
  }
  const unpaced = create({ descriptors: "reflection", reloadEveryMs: 0 });
  await expect(unpaced).rejects.toThrow("reloadEveryMs must be between 1");
});

test("a descriptor file larger than 64 MiB is rejected", async () => {
  using folder = createTempFolder();
  const file = folder.file("large.binpb");
  writeFileSync(file, "");
  truncateSync(file, 200_000_001);
  const started = createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: pathToFileURL(file) }] });
  await expect(started).rejects.toThrow("large.binpb is larger than 67108864 bytes");
});

test("an error about a reflection header field does not contain its value", async () => {
  const reflected = { descriptors: "reflection", reflectionHeader: { "x-ask": "s3cret\u2026" } } as const;
  await expect(createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", ...reflected }] })).rejects.toMatchObject({
    code: "ERR_HEADER_FIELD",
    message: 'the value of header "x-ask" contains a character that is not allowed',
  });
});
