import { createHook } from "node:async_hooks";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { descriptorSetOf, KitchenSink, LibraryService, OrderService, serviceWithRoutes, startReflectedUpstream
} from "@protoport/testing/proxy";
import { compileProxy } from "../src/compile-proxy.ts";
// oxfmt-ignore
import { createProxy, type DescriptorReload, type ProxyGateway, type ProxyOptions, type ReloadReport
} from "../src/create-proxy.ts";
import { ProxiedUpstream, type UpstreamDescriptors } from "../src/forward/index.ts";
import type { OpenedOptions } from "../src/generation.ts";
import { Generations } from "../src/generations.ts";
import { ServiceOwners } from "../src/upstreams/index.ts";

async function openProxy(options: ProxyOptions): Promise<ProxyGateway> {
  const proxy = await createProxy(options);
  onTestFinished(() => proxy.close());
  return proxy;
}

type OnCompiled = (descriptors: readonly UpstreamDescriptors[]) => void;
type Given = { reads: readonly (() => Promise<Uint8Array>)[]; onCompiled: OnCompiled; onReload?: () => void };

function openGenerations(reads: Given["reads"], onCompiled: OnCompiled, onReload?: () => void): TestGenerations {
  const generations = new Generations<Given>(open);
  let isOpen = false;
  const close = (): Promise<void> => (isOpen ? generations.stop(() => Promise.resolve()) : Promise.resolve());
  onTestFinished(close);
  return {
    load: async () => {
      await generations.apply({ reads, onCompiled, ...(onReload && { onReload }) });
      isOpen = true;
    },
    reload: () => generations.reload(),
    close: () => void close(),
    get inUse() {
      return generations.inUse.compiled;
    },
    get reloads() {
      return generations.inUse.descriptorReloads;
    },
  };
}

interface TestGenerations {
  load(): Promise<void>;
  reload(): Promise<ReloadReport>;
  close(): void;
  readonly inUse: unknown;
  readonly reloads: readonly DescriptorReload[];
}

function open({ reads, onCompiled, onReload }: Given): OpenedOptions {
  const options = reads.map((read, at) => ({ upstream: `http://127.0.0.1:${at + 1}`, descriptors: { read } }));
  const owners = new ServiceOwners(options);
  const upstreams = options.map((each, at) => new ProxiedUpstream(each, { observe: undefined }, at, owners));
  const local = { definitions: [], registry: undefined };
  const compiler = { upstreams, owners, localMethods: [], local, options: {}, report: () => undefined };
  return {
    options: onReload === undefined ? {} : { onReload },
    report: compiler.report,
    upstreams,
    compile: function* (offers) {
      const descriptors = offers.map((each) => each.descriptors);
      const compiled = yield* compileProxy(compiler, descriptors);
      onCompiled(descriptors);
      return compiled;
    },
  };
}

const aborted: unknown = expect.stringContaining("aborted");

test("a proxy closed during a reload keeps its routes and reports nothing", async () => {
  let set = descriptorSetOf(LibraryService.file);
  let reports = 0;
  const onCompiled = vi.fn<OnCompiled>();
  const generations = openGenerations([() => Promise.resolve(set)], onCompiled, () => void reports++);
  await generations.load();
  const { inUse } = generations;
  set = descriptorSetOf(GreenhouseService.file);
  onCompiled.mockImplementation(() => generations.close());
  expect(await generations.reload()).toMatchObject({ isChanged: false, problems: [aborted] });
  expect([generations.inUse === inUse, reports]).toEqual([true, 0]);
});

test("a proxy closed while routes are compiled compiles no other routes", async () => {
  let files = [LibraryService.file, KitchenSink.file];
  const onCompiled = vi.fn<OnCompiled>();
  const reads = [0, 1].map((at) => async () => descriptorSetOf(...files.slice(at, at + 1)));
  const generations = openGenerations(reads, onCompiled);
  await generations.load();
  files = [GreenhouseService.file, OrderService.file];
  onCompiled.mockClear().mockImplementation(() => {
    generations.close();
    throw new Error("refused");
  });
  expect(await generations.reload()).toMatchObject({ isChanged: false, problems: [aborted] });
  expect(onCompiled).toHaveBeenCalledOnce();
});

test("an upstream is unknown until it sends descriptors, even invalid ones", async () => {
  const unreachable = new ConnectError("unreachable", Code.Unavailable);
  const notFound = new ConnectError("HTTP 404", Code.Unimplemented);
  const invalid = Buffer.from("no descriptors");
  const described = [LibraryService, KitchenSink, GreenhouseService].map(({ file }) => descriptorSetOf(file));
  const [library, sinks, refused] = described;
  let next: Uint8Array | Error | undefined = unreachable;
  let other = sinks ?? invalid;
  const read = async (): Promise<Uint8Array> => {
    if (next instanceof Uint8Array) return next;
    throw next;
  };
  let unknown: readonly boolean[] = [];
  const generations = openGenerations([read, () => Promise.resolve(other)], (descriptors) => {
    if (descriptors.some(({ services }) => services.some(({ name }) => name === GreenhouseService.name)))
      throw new Error("refused");
    unknown = descriptors.map(({ isUnknown }) => isUnknown);
  });
  await generations.load();
  const seen: unknown[] = [unknown];
  const problems: (string | undefined)[] = [];
  for (next of [invalid, notFound, invalid, library, unreachable]) {
    // The third time, the other upstream's descriptors cannot be used either.
    other = (problems.length === 2 ? refused : sinks) ?? invalid;
    await generations.reload();
    seen.push(unknown);
    problems.push(generations.reloads[0]?.problem);
  }
  expect(seen).toEqual([true, false, true, false, false, false].map((isUnknown) => [isUnknown, false]));
  const notSet = expect.stringContaining("not a binary");
  expect(problems).toEqual([notSet, notFound.message, notSet, undefined, unreachable.message]);
});

test("an upstream's valid descriptors are used despite another upstream's conflict", async () => {
  let files = [[LibraryService.file], [KitchenSink.file]];
  const upstreams = files.map((_, at) => ({
    upstream: `http://127.0.0.1:${at + 1}`,
    descriptors: { read: async () => descriptorSetOf(...(files[at] ?? [])) },
  }));
  const proxy = await openProxy({ upstreams });
  files = [[LibraryService.file, GreenhouseService.file], [LibraryService.file]];
  const conflict = `${LibraryService.typeName} is served by two upstreams`;
  expect((await proxy.reload()).problems).toEqual([conflict]);
  expect(proxy.descriptorReloads.map(({ services, problem }) => ({ services: services.toSorted(), problem }))).toEqual([
    { services: [GreenhouseService.typeName, LibraryService.typeName], problem: undefined },
    { services: [KitchenSink.typeName], problem: conflict },
  ]);
});

test("a reload replaces routes, services and descriptorReloads together", async () => {
  const known = [LibraryService, KitchenSink, GreenhouseService];
  const generations = [
    [[LibraryService], [KitchenSink]],
    [[GreenhouseService], [KitchenSink, LibraryService]],
    [[KitchenSink], [GreenhouseService]],
  ];
  let [current = []] = generations;
  const upstreams = current.map((_, at) => ({
    upstream: `http://127.0.0.1:${at + 1}`,
    descriptors: { read: async () => descriptorSetOf(...(current[at] ?? []).map(({ file }) => file)) },
  }));
  const proxy = await openProxy({ upstreams });
  const seen = new Set<string>();
  const look = (): void => {
    const { routes, services, descriptorReloads } = proxy;
    const routed = known.filter(({ typeName }) => routes.some(({ path }) => path.startsWith(`/${typeName}/`)));
    const reloaded = descriptorReloads.flatMap((each) => each.services);
    const names = [routed.map(({ typeName }) => typeName), services.map(({ typeName }) => typeName), reloaded];
    seen.add(JSON.stringify([names.map((each) => each.toSorted()), descriptorReloads.map((each) => each.successes)]));
  };
  // Looks before each callback of a promise, a timer or an immediate.
  const hook = createHook({ before: look }).enable();
  onTestFinished(() => void hook.disable());
  for (current of generations.slice(1)) expect(await proxy.reload()).toMatchObject({ isChanged: true, problems: [] });
  look();
  const want = generations.map((each, at) => {
    const names = each.flatMap((services) => services.map(({ typeName }) => typeName)).toSorted();
    return JSON.stringify([Array(3).fill(names), [at + 1, at + 1]]);
  });
  expect([...seen]).toEqual(want);
});

test("createProxy rejects an unknown RPC in rest.omit despite a local service", async () => {
  const proxy = createProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(KitchenSink.file) }],
    routes: (router) => router.service(GreenhouseService, {}),
    rest: { omit: ["a.B.C"] },
  });
  await expect(proxy).rejects.toThrow('omit: selector "a.B.C" does not match an RPC');
});

test("descriptorReloads counts each read, and onReload reports the end of problems", async () => {
  const [library, greenhouse] = [LibraryService, GreenhouseService].map(({ file }) => descriptorSetOf(file));
  const invalid = Buffer.from("no descriptors");
  const unreadable = new Error("no file\nat all");
  let next: Uint8Array | Error | undefined = library;
  // A source may throw instead of rejecting.
  const read = (): Promise<Uint8Array> => {
    if (next instanceof Uint8Array) return Promise.resolve(next);
    throw next;
  };
  const reports: ReloadReport[] = [];
  const proxy = await openProxy({
    upstreams: [
      { upstream: "http://127.0.0.1:1", descriptors: { read } },
      { upstream: "http://127.0.0.1:2", descriptors: descriptorSetOf(KitchenSink.file) },
    ],
    onReload: (report) => void reports.push(report),
  });
  const seen: unknown[] = [];
  let nowMs = Date.now();
  let successMs = 0;
  using _ = vi.spyOn(Date, "now").mockImplementation(() => nowMs);
  for (next of [library, unreadable, unreadable, library, library, invalid, greenhouse, new Uint8Array()]) {
    reports.length = 0;
    nowMs += 1;
    const { isChanged, problems } = await proxy.reload();
    const [reload, other] = proxy.descriptorReloads;
    if (reload?.problem === undefined) successMs = nowMs;
    expect(reload?.lastSuccessMs).toBe(successMs);
    expect(other).toMatchObject({ problem: undefined, successes: seen.length + 2, failures: 0 });
    expect(problems).toEqual(reload?.problem?.split("\n") ?? []);
    seen.push([reload?.successes, reload?.failures, isChanged, reload?.problem, reports.length]);
  }
  const unusable = "127.0.0.1:1: cannot use the descriptors";
  expect(seen).toEqual([
    [2, 0, false, undefined, 0],
    [2, 1, false, "no file\nat all", 1],
    [2, 2, false, "no file\nat all", 1],
    // The problem has ended, although the descriptors are unchanged.
    [3, 2, false, undefined, 1],
    [4, 2, false, undefined, 0],
    [4, 3, false, `${unusable}: they are not a binary google.protobuf.FileDescriptorSet`, 1],
    [5, 3, true, undefined, 1],
    [5, 4, false, `${unusable}: they have no service to proxy`, 1],
  ]);
});

test("a problem that two upstreams have is reported once", async () => {
  let isReadable = true;
  const read = async (set: Uint8Array): Promise<Uint8Array> => {
    if (isReadable) return set;
    throw new Error("no file");
  };
  const upstreams = [LibraryService, KitchenSink].map(({ file }, at) => ({
    upstream: `http://127.0.0.1:${at + 1}`,
    descriptors: { read: () => read(descriptorSetOf(file)) },
  }));
  const proxy = await openProxy({ upstreams });
  isReadable = false;
  expect(await proxy.reload()).toMatchObject({ isChanged: false, problems: ["no file"] });
  expect(proxy.descriptorReloads.map(({ problem }) => problem)).toEqual(["no file", "no file"]);
});

test("only unreadable descriptors are read again, and success resets the wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const library = descriptorSetOf(LibraryService.file);
  let next: Uint8Array | undefined = library;
  let reads = 0;
  const read = async (): Promise<Uint8Array> => {
    reads++;
    if (next === undefined) throw new Error("no file");
    return next;
  };
  const generations = openGenerations([read], () => undefined);
  await generations.load();
  const timers: number[] = [];
  for (next of [Buffer.from("no descriptors"), undefined, library, undefined, undefined, undefined, library]) {
    await generations.reload();
    timers.push(vi.getTimerCount());
  }
  expect(timers).toEqual([0, 1, 0, 1, 1, 1, 0]);
  next = undefined;
  await generations.reload();
  // The first wait is a second, ±20 %.
  await vi.advanceTimersByTimeAsync(1_200);
  expect(reads).toBe(10);
});

test("reloads lengthen the wait for an unreachable upstream, and new options reset it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  let reads = 0;
  const library = descriptorSetOf(LibraryService.file);
  const unreadable = (): Promise<Uint8Array> => {
    reads++;
    return Promise.reject(new ConnectError("unreachable", Code.Unavailable));
  };
  const generations = openGenerations([() => Promise.resolve(library), unreadable], () => undefined);
  await generations.load();
  for (let reload = 0; reload < 5; reload++) await generations.reload();
  reads = 0;
  // The sixth wait is 10 s, ±20 %.
  await vi.advanceTimersByTimeAsync(5_000);
  expect(reads).toBe(0);
  await generations.load();
  reads = 0;
  // The first wait is a second, ±20 %.
  await vi.advanceTimersByTimeAsync(1_200);
  expect(reads).toBe(1);
});

test("reconfigure reads descriptors again that change during accept", async () => {
  let { file } = LibraryService;
  let changed: (() => void) | undefined;
  const watch = (notify: () => void): (() => void) => {
    changed = notify;
    return () => undefined;
  };
  const upstreams = [
    { upstream: "http://127.0.0.1:1", descriptors: { read: async () => descriptorSetOf(file), watch } },
    { upstream: "http://127.0.0.1:2", descriptors: descriptorSetOf(KitchenSink.file) },
  ];
  const proxy = await openProxy({ upstreams });
  await proxy.reconfigure({ upstreams }, () => {
    ({ file } = GreenhouseService);
    changed?.();
  });
  const names = (): readonly string[] => proxy.services.map(({ typeName }) => typeName);
  await expect.poll(names).toEqual([GreenhouseService.typeName, KitchenSink.typeName]);
});

test("onReload reports a new conflict although the routes stay the same", async () => {
  await using upstream = await startReflectedUpstream(serviceWithRoutes("a.A", { Get: [] }));
  const reports: ReloadReport[] = [];
  const upstreams = [
    { upstream: upstream.address, descriptors: "reflection" as const, services: ["a.*"] },
    { upstream: "unix:/none/b", descriptors: descriptorSetOf(KitchenSink.file), services: ["kitchensink.*"] },
  ];
  const proxy = await openProxy({ upstreams, onReload: (report) => void reports.push(report) });
  upstream.offer(serviceWithRoutes("a.A", { Get: [] }), serviceWithRoutes("kitchensink.v1.Other", { Get: [] }));
  for (let reload = 0; reload < 2; reload++) await proxy.reload();
  expect(reports).toEqual([{ isChanged: false, added: [], removed: [], problems: [] }]);
  expect(proxy.descriptorReloads[0]?.conflicts).toEqual(["service kitchensink.v1.Other belongs to unix:/none/b"]);
});

test.each([
  { name: "before", isFirst: true },
  { name: "after", isFirst: false },
])("load reports only the invalid descriptors of an upstream $name an unreachable one", async ({ isFirst }) => {
  const reads = [
    () => Promise.resolve(Buffer.from("no descriptors")),
    () => Promise.reject(new ConnectError("unreachable", Code.Unavailable)),
  ];
  const generations = openGenerations(isFirst ? reads : reads.toReversed(), () => undefined);
  const error: unknown = await generations.load().catch((thrown: unknown) => thrown);
  const message: unknown = expect.stringMatching(/^127\.0\.0\.1:\d: cannot use the descriptors: [^\n]*$/);
  expect(error).toMatchObject({ message });
});
