import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { descriptorSetOf, serviceWithRoutes } from "@protoport/testing/proxy";
import { createProxy, type ProxiedUpstreamOptions } from "../../../../src/create-proxy.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";

let nowMs = performance.now();
beforeEach(() => {
  // Each step takes a millisecond, so that a turn has 10 steps.
  vi.spyOn(performance, "now").mockImplementation(() => nowMs++);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function setOf(packageName: string, methods: readonly string[], types = 0): Uint8Array {
  const routes = Object.fromEntries(methods.map((name) => [name, []]));
  const messageType = Array.from({ length: types }, (_, at) => ({ name: `Message${at}` }));
  const file = { name: `${packageName}.large.proto`, package: `${packageName}.large`, syntax: "proto3", messageType };
  const { file: small } = serviceWithRoutes(`${packageName}.Service`, routes);
  return Buffer.concat([descriptorSetOf(small), setOfFiles(file)]);
}

/** So many types that describing them takes thousands of turns. */
const many = 20_000;

class Changing {
  current: Uint8Array;
  readonly proxied: ProxiedUpstreamOptions;

  constructor(packageName: string, current: Uint8Array) {
    this.current = current;
    const read = (): Promise<Uint8Array> => Promise.resolve(this.current);
    this.proxied = { upstream: "http://127.0.0.1:1", descriptors: { read }, services: [`${packageName}.*`] };
  }
}

/** Waits until all small sets are described, but no large set, and then until the limit has passed. */
async function passLimit(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  vi.advanceTimersByTime(5_000);
}

const late = expect.stringContaining("timed out after 5000 ms");

test("an upstream's reload does not wait for another upstream's large descriptor set", async () => {
  const [a, b] = [new Changing("a", setOf("a", ["Get"])), new Changing("b", setOf("b", ["Get"]))];
  const proxy = await createProxy({ upstreams: [a.proxied, b.proxied] });
  a.current = setOf("a", ["Get", "Large"], many);
  b.current = setOf("b", ["Get", "Small"]);
  const reloading = proxy.reload();
  await passLimit();
  expect(await reloading).toMatchObject({ added: ["/b.Service/Small"], problems: [late] });
  // The large set is used once it is described.
  expect(await proxy.reload()).toMatchObject({ added: ["/a.Service/Large"], problems: [] });
  await proxy.close();
});

test("the start does not wait for one upstream's large descriptor set", async () => {
  const [a, b] = [new Changing("a", setOf("a", ["Get"], many)), new Changing("b", setOf("b", ["Get"]))];
  const opening = createProxy({ upstreams: [a.proxied, b.proxied] });
  await passLimit();
  const proxy = await opening;
  expect(proxy.services.map(({ typeName }) => typeName)).toEqual(["b.Service"]);
  expect(proxy.descriptorReloads).toMatchObject([{ problem: late }, { problem: undefined }]);
  expect((await proxy.reload()).added).toEqual(["/a.Service/Get"]);
  await proxy.close();
});

test("the start waits for one descriptor set if all are large", async () => {
  const [a, b] = ["a", "b"].map((name) => new Changing(name, setOf(name, ["Get"], many)).proxied);
  const opening = createProxy({ upstreams: [a, b].flatMap((each) => each ?? []) });
  await passLimit();
  const proxy = await opening;
  expect(proxy.services.length).toBeGreaterThan(0);
  await proxy.close();
});
