import { renameSync, writeFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestGateway, descriptorSetOf, GreenhouseService, startProxyProcess } from "@protoport/testing/proxy";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { StreamService } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { readSamples } from "../../../../../testing/src/telemetry/samples.ts";

// Invalid descriptors replace those of a running proxy command.

const folder = createTempFolder();
const file = folder.file("set.binpb");
const descriptors = descriptorSetOf(GreenhouseService.file);

/** The services that the upstream's reflection lists. */
let listed: readonly DescService[] = [];
const upstream = createTestGateway({
  routes: (router) => {
    router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) });
    router.service(ServerReflection, {
      serverReflectionInfo: (requests, context) =>
        createReflectionService(listed).serverReflectionInfo(requests, context),
    });
  },
});
let address = "";

beforeAll(async () => {
  address = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1" })).port}`;
});
afterAll(async () => {
  await upstream.close();
  folder[Symbol.dispose]();
});

/** Replaces the file in one step, because a reload may read it at any time. */
function replaceFile(content: string | Uint8Array): void {
  writeFileSync(`${file}.next`, content);
  renameSync(`${file}.next`, file);
}

function list(...services: readonly DescService[]): void {
  listed = services;
}

test.each<{
  name: string;
  source: () => readonly string[];
  breakSource: () => void;
  fixSource: () => void;
  problem: RegExp;
}>(
  // oxfmt-ignore
  [
    { name: "with a file that is not a descriptor set", source: () => ["--descriptors", file],
      breakSource: () => replaceFile("no descriptors"), fixSource: () => replaceFile(descriptors),
      problem: /they are not a binary google\.protobuf\.FileDescriptorSet; the previous descriptors of these upstreams stay in use$/ },
    { name: "without a service in reflection", source: () => ["--reflection"],
      breakSource: () => list(ServerReflection), fixSource: () => list(GreenhouseService, ServerReflection),
      problem: /no service to proxy; the previous descriptors of these upstreams stay in use$/ },
  ],
)("a reload $name is logged and keeps the previous descriptors", async (testCase) => {
  writeFileSync(file, descriptors);
  list(GreenhouseService, ServerReflection);
  const args = ["--port", "0", "--drain-delay-ms", "0", "--upstream", address];
  await using proxy = await startProxyProcess([...args, ...testCase.source()]);
  const { command, baseUrl, adminUrl } = proxy;
  const metric = async (name: string): Promise<number> => {
    const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
    const ofReload = samples.filter((each) => each.name === `gateway_descriptors_reload_${name}`);
    return ofReload.find(({ labels }) => labels["upstream"] === address)?.value ?? Number.NaN;
  };
  expect(await metric("successful")).toBe(1);
  const startedAtS = await metric("last_success_seconds");
  expect(Math.abs(Date.now() / 1_000 - startedAtS)).toBeLessThan(600);

  testCase.breakSource();
  command.process.kill("SIGHUP");
  await expect.poll(() => metric("successful")).toBe(0);
  const failedAtS = await metric("last_success_seconds");
  for (let reload = 0; reload < 3; reload++) {
    command.process.kill("SIGHUP");
    // After the signal, calls are still served by the previous descriptors.
    const response = await fetch(`${baseUrl}/sensors/a/reading`);
    expect(await response.json()).toEqual({ sensor: "a", degreesCelsius: 21 });
  }
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
  expect(await metric("successful")).toBe(0);
  expect(await metric("last_success_seconds")).toBe(failedAtS);

  testCase.fixSource();
  command.process.kill("SIGHUP");
  await expect.poll(() => metric("successful")).toBe(1);
  expect(await metric("last_success_seconds")).toBeGreaterThan(startedAtS);
  await expect.poll(command.stdout).toMatch(/\ndescriptors are readable again, unchanged\n$/);
  // Reloads run one after another, so the failed reloads have finished.
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  const logged = command.stderr().split("\n").slice(0, -1);
  expect(logged).toEqual([expect.stringMatching(/^cannot reload the descriptors: /)]);
  expect(logged[0]).toMatch(testCase.problem);
});

test("an upstream's changes are reported while another one is unreachable", async () => {
  list(GreenhouseService, ServerReflection);
  const upstreams = ["--upstream", "http://127.0.0.1:1", "--upstream", address, "--reflection"];
  const services = ["greenhouse.*", "streams.*"].flatMap((pattern) => ["--service", `${address}=${pattern}`]);
  const other = ["--service", "http://127.0.0.1:1=missing.*"];
  await using proxy = await startProxyProcess(["--port", "0", ...upstreams, ...services, ...other]);
  const { command } = proxy;
  list(GreenhouseService, StreamService, ServerReflection);
  command.process.kill("SIGHUP");
  await command.find(/^descriptors reloaded\n {2}\+ \/streams\.v1\.StreamService\//m);
  await command.find(
    /^cannot reload the descriptors: 127\.0\.0\.1:1: .*; the previous descriptors of these upstreams stay in use$/m,
  );
  expect(command.stdout()).not.toContain("unchanged");
});
