import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { file_greenhouse_v1_greenhouse, GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy, type ProxiedUpstream, type ReloadReport } from "../../../src/gateway/create-proxy.ts";
import { createGateway } from "../../../src/gateway/index.ts";
import { createReflectionService, ServerReflection } from "../../../src/gateway/reflection/index.ts";
import { StreamService } from "../../gen/streams/v1/stream_service_pb.ts";
import { within } from "../../support/deadline.ts";
import { descriptorSetOf } from "../../support/gateway/descriptor-set.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

// Where a proxy has its descriptors from, and when it reads them again.

test("reflection is read again after so many milliseconds, and told of only if it has changed", async () => {
  let offered: readonly DescService[] = [GreenhouseService, ServerReflection];
  let asked = 0;
  const upstream = createGateway({
    routes: (router) =>
      void router.service(ServerReflection, {
        serverReflectionInfo: (requests, context) => {
          asked++;
          return createReflectionService(offered).serverReflectionInfo(requests, context);
        },
      }),
  });
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  const reports: ReloadReport[] = [];
  const proxy = await createProxy({
    upstreams: [{ upstream: `http://127.0.0.1:${String(port)}`, descriptors: "reflection", reloadEveryMs: 20 }],
    onReload: (report) => void reports.push(report),
  });
  try {
    expect(proxy.services.map(({ typeName }) => typeName)).toEqual([GreenhouseService.typeName]);
    await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(3);
    expect(reports).toEqual([]);
    offered = [GreenhouseService, StreamService, ServerReflection];
    await expect.poll(() => reports.length, { timeout: 10_000 }).toBe(1);
    // Another order is no change.
    offered = offered.toReversed();
    const askedBefore = asked;
    await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(askedBefore + 2);
    expect(reports.length).toBe(1);
    expect(reports[0]).toMatchObject({ removed: [], problems: [] });
    expect(reports[0]?.added).toContain(`/${StreamService.typeName}/${StreamService.methods[0]?.name}`);
    offered = [];
    await expect.poll(() => reports.at(-1)?.problems, { timeout: 10_000 }).not.toEqual([]);
    expect(proxy.services.length).toBe(2);
  } finally {
    await proxy.close();
    await upstream.close();
  }
});

test("reflection that is not answered is given up when the proxy closes", async () => {
  let asked = 0;
  const upstream = createGateway({
    routes: (router) =>
      void router.service(ServerReflection, {
        async *serverReflectionInfo(requests, context) {
          if (asked++ > 0) await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
          yield* createReflectionService([GreenhouseService]).serverReflectionInfo(requests, context);
        },
      }),
  });
  const { port } = await upstream.listen({ host: "127.0.0.1" });
  const proxy = await createProxy({
    upstreams: [{ upstream: `http://127.0.0.1:${String(port)}`, descriptors: "reflection" }],
  });
  const reloaded = proxy.reload();
  await expect.poll(() => asked).toBe(2);
  await proxy.close();
  expect((await within(reloaded, "the end of the reload")).problems.join()).toMatch(/abort/);
  await upstream.close();
});

test("a URL that is no file, and a time that is none, are refused", async () => {
  const upstream = "http://127.0.0.1:1";
  const create = (more: Omit<ProxiedUpstream, "upstream">): Promise<unknown> =>
    createProxy({ upstreams: [{ upstream, ...more }] });
  await expect(create({ descriptors: new URL("https://a/b") })).rejects.toThrow("The URL must be of scheme file");
  for (const name of ["timeoutMs", "timeoutMaxMs"]) {
    for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(create({ descriptors: new Uint8Array(), [name]: value })).rejects.toThrow(`${name} must be from 1`);
    }
  }
  await expect(create({ descriptors: "reflection", reloadEveryMs: 0 })).rejects.toThrow("reloadEveryMs must be from 1");
});

test("a file is read at the start, by a reload, and once it has changed", async () => {
  using folder = createTempFolder();
  const file = folder.file("set.binpb");
  writeFileSync(file, descriptorSetOf(file_greenhouse_v1_greenhouse));
  const reports: ReloadReport[] = [];
  const proxy = await createProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: pathToFileURL(file), reloadEveryMs: 5 }],
    onReload: (report) => void reports.push(report),
  });
  expect(await proxy.reload()).toEqual({ added: [], removed: [], problems: [] });
  writeFileSync(file, "none");
  await expect.poll(() => reports.length, { timeout: 10_000 }).toBe(1);
  // Told once, until the file is another.
  expect((await proxy.reload()).problems).not.toEqual([]);
  await proxy.close();
});
