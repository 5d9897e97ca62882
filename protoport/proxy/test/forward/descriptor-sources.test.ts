import { existsSync, renameSync, statSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { countRefTimers } from "../../../testing/src/ref-timers.ts";
import { createTempFolder } from "@protoport/testing/process";
import { toDescriptorSource, readInTime } from "../../src/forward/descriptor-sources.ts";
import { createUpstream } from "../../src/upstreams/index.ts";
import { Code } from "@connectrpc/connect";
import { DescriptorReader, type ReadDescriptors } from "../../src/forward/descriptor-reader.ts";
import { getEventListeners } from "node:events";
// oxfmt-ignore
import { descriptorSetOf, openGreenhouseClient, respondWatered, serviceWithRoutes, startScriptedServer, wateringOf
} from "@protoport/testing/proxy";
import { createProxy, type DescriptorSource, type ProxiedUpstreamOptions } from "../../src/create-proxy.ts";

afterEach(() => void vi.useRealTimers());

/** A descriptor file's source after the first read. Dispose of it with `await using`, which stops the watch. */
interface WatchedFile extends AsyncDisposable {
  read(): Promise<Uint8Array>;
  /** Checks the file once, and returns how many changes the check reports. */
  check(): Promise<number>;
}

async function watchFile(path: string): Promise<WatchedFile> {
  const upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const settings = { upstream, isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  const source = toDescriptorSource(pathToFileURL(path), settings);
  const { signal } = new AbortController();
  await source.read(signal);
  let changes = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const stopWatch = source.watch?.(() => void changes++);
  return {
    read: () => source.read(signal),
    check: async () => {
      const before = changes;
      vi.advanceTimersToNextTimer();
      // The check has ended when the next check is scheduled.
      while (vi.getTimerCount() === 0) await setImmediate();
      return changes - before;
    },
    [Symbol.asyncDispose]: async () => {
      stopWatch?.();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test("a changed descriptor file is reported until it is read", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  await using file = await watchFile(path);
  expect(await file.check()).toBe(0);
  writeFileSync(path, "second, longer");
  // The first check sees a file that may be incomplete.
  expect([await file.check(), await file.check(), await file.check()]).toEqual([0, 1, 1]);
  await file.read();
  expect([await file.check(), await file.check()]).toEqual([0, 0]);
});

test("an overwritten descriptor file is reported, even if its size is unchanged", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  await using file = await watchFile(path);
  const { ino, size, mtimeNs } = statSync(path, { bigint: true });
  // Writes until the time changes, because a file system's clock may tick only every few milliseconds.
  do writeFileSync(path, "other");
  while (statSync(path, { bigint: true }).mtimeNs === mtimeNs);
  expect(statSync(path, { bigint: true })).toMatchObject({ ino, size });
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
});

test("a descriptor file is reported when it disappears and when it returns", async () => {
  using folder = createTempFolder();
  const [path, away] = [folder.write("set.binpb", "first"), folder.file("away.binpb")];
  await using file = await watchFile(path);
  renameSync(path, away);
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
  await expect(file.read()).rejects.toThrow("ENOENT: no such file or directory, open ");
  expect([await file.check(), await file.check()]).toEqual([0, 0]);
  renameSync(away, path);
  expect([await file.check(), await file.check()]).toEqual([0, 1]);
});

// Linux lists the open files of a process.
test.runIf(existsSync("/proc/self/fd"))("a descriptor file that is replaced during a read is reported", async () => {
  using folder = createTempFolder();
  // The file is read in several pieces.
  const first = Buffer.alloc(4 * 1024 * 1024);
  const path = folder.write("set.binpb", first);
  const next = folder.write("next.binpb", "next");
  await using file = await watchFile(path);
  const reading = file.read();
  let isSettled = false;
  const settle = (): void => void (isSettled = true);
  void reading.then(settle, settle);
  while (!folder.open().includes(path)) {
    if (isSettled) expect.unreachable(`the file was read before it was replaced: ${(await reading).byteLength} bytes`);
    await setImmediate();
  }
  renameSync(next, path);
  expect([(await reading).byteLength, await file.check(), await file.check()]).toEqual([first.byteLength, 0, 1]);
});

test("a watch that stops during a check schedules no other", async () => {
  using folder = createTempFolder();
  const path = folder.write("set.binpb", "first");
  const file = await watchFile(path);
  vi.advanceTimersToNextTimer();
  await file[Symbol.asyncDispose]();
  // Takes longer than the check's own `stat` call.
  for (let turn = 0; turn < 20; turn++) await stat(path);
  expect(vi.getTimerCount()).toBe(0);
});

test("the watch of a descriptor file does not keep the process running", async () => {
  using folder = createTempFolder();
  const settings = { isProxied: () => true, reloadEveryMs: 10, reflectionHeader: {} };
  await using upstream = createUpstream({ addresses: "http://127.0.0.1:1" });
  const source = toDescriptorSource(pathToFileURL(folder.write("set.binpb", "")), { ...settings, upstream });
  const timers = countRefTimers();
  const stopWatch = source.watch?.(() => undefined);
  expect(countRefTimers()).toBe(timers);
  stopWatch?.();
});

test("concurrent reads report a late result once", async () => {
  const source = Promise.withResolvers<Uint8Array>();
  let lateResults = 0;
  const reader = new DescriptorReader(
    () => source.promise,
    async (set) => ({ set, descriptors: undefined }),
    () => void (lateResults += 1),
  );
  const { signal } = new AbortController();
  const limits = { read: Promise.resolve(), describe: new Promise<never>(() => undefined), ms: 1 };
  await Promise.all([reader.read(signal, limits), reader.read(signal, limits)]);
  source.resolve(Uint8Array.of(1));
  expect(await reader.read(signal, { ...limits, read: limits.describe })).toMatchObject({ set: Uint8Array.of(1) });
  expect(lateResults).toBe(1);
});

test("a result that arrives after the timeout is used by the next read", async () => {
  const resolvers: ((set: Uint8Array) => void)[] = [];
  const late = Promise.withResolvers<void>();
  const reader = new DescriptorReader(
    () => new Promise((resolve) => void resolvers.push(resolve)),
    async (set) => ({ set, descriptors: undefined }),
    late.resolve,
  );
  const never = new Promise<never>(() => undefined);
  const read = (limit: Promise<unknown>): Promise<ReadDescriptors | Error> =>
    reader.read(new AbortController().signal, { read: limit, describe: never, ms: 5_000 });
  expect(await read(Promise.resolve())).toMatchObject({
    code: Code.DeadlineExceeded,
    rawMessage: "reading the descriptors timed out after 5000 ms",
  });
  resolvers[0]?.(Uint8Array.of(1));
  await late.promise;
  expect(await read(never)).toEqual({ set: Uint8Array.of(1), descriptors: undefined });
  const next = read(never);
  resolvers[1]?.(Uint8Array.of(2));
  expect(await next).toEqual({ set: Uint8Array.of(2), descriptors: undefined });
});

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
  const proxy = await createProxy({ upstreams: [new Pending("a").options] });
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
  expect([await readInTime(source, "a", signal), getEventListeners(signal, "abort")]).toEqual([Uint8Array.of(1), []]);
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
  expect([vi.getTimerCount(), changes]).toEqual([timers - 2, 0]);
});
