import { expect, test, vi } from "vitest";
import { descriptorSetOf, GreenhouseService } from "@protoport/testing/proxy";
import { createProxy } from "../../../../src/create-proxy.ts";
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
