import { expect, test, vi, afterEach, beforeEach } from "vitest";
import { descriptorSetOf, GreenhouseService, serviceWithRoutes } from "@protoport/testing/proxy";
import { createProxy, type ProxiedUpstreamOptions } from "../../../../src/create-proxy.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";

/** The greenhouse's descriptors, and 20,000 types in 200 other files. */
const large = Buffer.concat([
  descriptorSetOf(GreenhouseService.file),
  ...Array.from({ length: 200 }, (_, file) => {
    const messageType = Array.from({ length: 100 }, (_each, at) => ({ name: `Message${at}` }));
    return setOfFiles({ name: `large${file}.proto`, package: `large${file}`, syntax: "proto3", messageType });
  }),
]);

const types = { inputType: ".rpcs.Message", outputType: ".rpcs.Message" };
const method = Array.from({ length: 500 }, (_, at) => ({ name: `Get${at}`, ...types }));
const parts = { messageType: [{ name: "Message" }], service: [{ name: "Large", method }] };
/** The greenhouse's descriptors, and a file with 500 RPCs. */
const manyRpcs = Buffer.concat([
  descriptorSetOf(GreenhouseService.file),
  setOfFiles({ name: "rpcs.proto", package: "rpcs", syntax: "proto3", ...parts }),
]);

function createChangingProxy() {
  const source = { current: descriptorSetOf(GreenhouseService.file) };
  const read = (): Promise<Uint8Array> => Promise.resolve(source.current);
  const upstreams = [{ upstream: "http://127.0.0.1:1", descriptors: { read } }];
  return createProxy({ upstreams }).then((proxy) => ({ proxy, source }));
}

/** Returns how many event loop turns a task takes if each step takes longer than a turn may. */
async function turnsOf(task: () => Promise<unknown>): Promise<number> {
  let nowMs = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 11));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  try {
    await task();
  } finally {
    isDone = true;
    clock.mockRestore();
  }
  return turns;
}

test.each([
  { name: "many files", descriptors: large, turns: 200 },
  { name: "many RPCs", descriptors: manyRpcs, turns: 500 },
])("a reload with $name does not block the event loop", async ({ descriptors, turns }) => {
  const { proxy, source } = await createChangingProxy();
  source.current = descriptors;
  const taken = await turnsOf(async () => {
    expect(await proxy.reload()).toMatchObject({ isChanged: true, problems: [] });
  });
  expect(taken).toBeGreaterThan(turns);
  await proxy.close();
});

test("a reload that a newer reload replaces changes no routes", async () => {
  const { proxy, source } = await createChangingProxy();
  source.current = large;
  const reloading = proxy.reload();
  const descriptors = descriptorSetOf(GreenhouseService.file);
  const rules = [
    { selector: `${GreenhouseService.typeName}.GetReading`, pattern: { case: "get", value: "/new/{sensor}" } },
  ] as const;
  await proxy.reconfigure({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors, rules }] });
  expect((await reloading).isChanged).toBe(false);
  expect((await proxy.fetch(new Request("http://proxy/new/1"))).status).toBe(503);
  await proxy.close();
});

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

function setOf(packageName: string, methods: readonly string[], typeCount = 0): Uint8Array {
  const routes = Object.fromEntries(methods.map((name) => [name, []]));
  const messageType = Array.from({ length: typeCount }, (_, at) => ({ name: `Message${at}` }));
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
