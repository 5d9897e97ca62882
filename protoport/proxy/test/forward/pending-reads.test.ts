import { getEventListeners } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { descriptorSetOf, serviceWithRoutes, startScriptedServer } from "@protoport/testing/proxy";
import { openGreenhouseClient, respondWatered, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
import { createProxy, type DescriptorSource, type ProxiedUpstreamOptions } from "../../src/create-proxy.ts";
import { readInTime, toDescriptorSource } from "../../src/forward/descriptor-sources.ts";

afterEach(() => void vi.useRealTimers());

/** An upstream whose second read does not resolve. */
class Pending {
  readonly signals: AbortSignal[] = [];
  readonly options: ProxiedUpstreamOptions;

  constructor(name: string) {
    const read: DescriptorSource["read"] = (signal) => {
      const count = this.signals.push(signal);
      const { file } = serviceWithRoutes(`${name}.Service`, Object.fromEntries([[`Get${count}`, []]]));
      return count === 2 ? new Promise(() => undefined) : Promise.resolve(descriptorSetOf(file));
    };
    this.options = { upstream: `unix:/none/${name}`, descriptors: { read }, services: [`${name}.*`] };
  }
}

test.each([{ names: ["a"] }, { names: ["a", "b"] }])(
  "a reload succeeds after a read of the upstreams $names has timed out",
  async ({ names }) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const upstreams = names.map((name) => new Pending(name));
    const reports: string[] = [];
    const proxy = await createProxy({
      upstreams: upstreams.map(({ options }) => options),
      onReload: ({ added, problems }) => void reports.push(...added, ...problems),
    });
    const reloading = proxy.reload();
    await vi.advanceTimersByTimeAsync(30_000);
    await reloading;
    expect(upstreams.map(({ signals }) => signals[1]?.aborted)).toEqual(names.map(() => true));
    // The last of these reloads reads all sources again. The first ones report results after the time limit.
    for (const _ of ["late", ...names]) await proxy.reload();
    const problem = "unix:/none/a: reading the descriptors timed out after 30000 ms";
    expect(reports).toContainEqual(expect.stringContaining(problem));
    expect(reports.filter((each) => each.endsWith("/Get3"))).toEqual(names.map((name) => `/${name}.Service/Get3`));
    await proxy.close();
    expect(vi.getTimerCount()).toBe(0);
  },
);

test("close rejects a reconfigure whose descriptors are not read yet", async () => {
  const upstream = new Pending("a");
  const options = { upstreams: [upstream.options] };
  const proxy = await createProxy(options);
  const rejected = expect(proxy.reconfigure(options)).rejects.toThrow("the proxy is closed");
  await expect.poll(() => upstream.signals.length).toBe(2);
  await proxy.close();
  await rejected;
});

test("a reload after close reports the abort despite a pending read", async () => {
  const upstream = new Pending("a");
  const proxy = await createProxy({ upstreams: [upstream.options] });
  await proxy.close();
  expect(await proxy.reload()).toMatchObject({ problems: [expect.stringContaining("aborted")] });
});

test("readInTime rejects a pending read with the reason of the abort", async () => {
  const controller = new AbortController();
  const source = { read: () => new Promise<never>(() => undefined) };
  const rejected = expect(readInTime(source, "a", controller.signal)).rejects.toThrow("closing");
  controller.abort(new Error("closing"));
  await rejected;
});

test("readInTime removes its listener from the signal", async () => {
  const { signal } = new AbortController();
  const source = { read: async () => Uint8Array.of(getEventListeners(signal, "abort").length) };
  expect(await readInTime(source, "a", signal)).toEqual(Uint8Array.of(1));
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("readInTime does not read for an aborted signal", async () => {
  const read = vi.fn<() => Promise<Uint8Array>>();
  await expect(readInTime({ read }, "a", AbortSignal.abort(new Error("closed")))).rejects.toThrow("closed");
  expect(read).not.toHaveBeenCalled();
});

test("a stopped watch of a reflection source leaves no timers", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: server.baseUrl });
  const options = { isProxied: () => true, reloadEveryMs: undefined, reflectionHeader: {} };
  const source = toDescriptorSource("reflection", { upstream: client.upstream, ...options });
  let changes = 0;
  const stop = source.watch?.(() => void changes++);
  expect(await wateringOf(client)).toBe("ok");
  const timers = vi.getTimerCount();
  // The repeated read, and the read for the new connection.
  stop?.();
  expect(vi.getTimerCount()).toBe(timers - 2);
  expect(changes).toBe(0);
});
