import { type DescFile, fromBinary, toBinary, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { expect, test, onTestFinished } from "vitest";
// oxfmt-ignore
import { descriptorSetOf, GreenhouseService, KitchenSink, Shelves, type FileInit, startReflectingServer
} from "@protoport/testing/proxy";
// oxfmt-ignore
import { createProxy, type DescriptorSource, type ProxiedUpstreamOptions, type ReloadReport, type ProxyGateway,
  createUpstream } from "../../../../src/create-proxy.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { truncateSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { createGrpcTransport } from "../../../../src/client/index.ts";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../../../gateway/src/reflection/index.ts";
import { StreamService } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTempFolder, within } from "@protoport/testing/process";

function withMethods(file: DescFile, isSelected: (name: string) => boolean): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf(file));
  for (const { service } of set.file) {
    for (const each of service) each.method = each.method.filter(({ name }) => isSelected(name));
  }
  return toBinary(FileDescriptorSetSchema, set);
}

test.each(
  // oxfmt-ignore
  [
    ["are not a FileDescriptorSet", [Buffer.from("x")], "not a binary google.protobuf.FileDescriptorSet"],
    ["contain no service", [setOfFiles()], "they have no service to proxy"],
    ["contain no service with all its types",
      [setOfFiles({ name: "a", service: [{ name: "A", method: [{ name: "Get", inputType: ".B", outputType: ".B" }] }] })],
      "127.0.0.1:1: cannot use the descriptors: they have no service to proxy; A: the type B is missing"],
    ["contain names that protoc would reject",
      [setOfFiles({ name: "a", package: "a;b", service: [{ name: "A" }] })],
      '127.0.0.1:1: cannot use the descriptors: they are not a valid definition: "a;b" is not a protobuf identifier.*'],
    ["contain the same service for two upstreams",
      [descriptorSetOf(KitchenSink.file), descriptorSetOf(KitchenSink.file, Shelves.file)],
      "kitchensink.v1.KitchenSink is served by two upstreams"],
  ],
)("descriptors that %s prevent the start of a proxy", async (_name, sets, problem) => {
  const upstreams = sets.map((descriptors) => ({ upstream: "http://127.0.0.1:1", descriptors }));
  await expect(createProxy({ upstreams })).rejects.toMatchObject({
    message: expect.stringMatching(new RegExp(`${problem}$`)),
    code: "ERR_DESCRIPTORS",
  });
});

test("an onReload error is reported as a fault after the reload", async () => {
  const faults: string[] = [];
  let set = withMethods(GreenhouseService.file, (name) => name === "GetReading");
  const proxy = await createProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: { read: () => Promise.resolve(set) } }],
    onReload: () => {
      throw new Error("no log");
    },
    onFault: (error, _what, _request, errorCode) => void faults.push(`${errorCode} ${String(error)}`),
  });
  set = withMethods(GreenhouseService.file, () => true);
  expect([(await proxy.reload()).added.length, faults]).toEqual([4, ["ERR_CALLBACK_FAILED Error: no log"]]);
  await proxy.close();
});

test("several reloads requested during a reload result in one reload", async () => {
  const set = descriptorSetOf(GreenhouseService.file);
  const reads: ((bytes: Uint8Array) => void)[] = [];
  const read = (): Promise<Uint8Array> => new Promise((resolve) => void reads.push(resolve));
  const started = createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: { read } }] });
  reads[0]?.(set);
  const proxy = await started;
  const first = proxy.reload();
  await expect.poll(() => reads.length).toBe(2);
  const others = [proxy.reload(), proxy.reload()];
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
  expect(reads.length).toBe(2);
  reads[1]?.(set);
  await first;
  await expect.poll(() => reads.length).toBe(3);
  reads[2]?.(set);
  const unchanged = { isChanged: false, added: [], removed: [], problems: [] };
  expect(new Set(await Promise.all(others))).toEqual(new Set([unchanged]));
  await proxy.close();
});

test("all upstreams' problems are reported together", async () => {
  const descriptors = Buffer.from("x");
  const upstreams = [1, 2].map((port) => ({ upstream: `http://127.0.0.1:${port}`, descriptors }));
  const failed = createProxy({ upstreams });
  await expect(failed).rejects.toThrow("127.0.0.1:1: cannot use the descriptors");
  await expect(failed).rejects.toThrow("127.0.0.1:2: cannot use the descriptors");
});

function fileOf(name: string, typeName: string | undefined, dependency: readonly string[]): FileInit {
  const typed = typeName === undefined ? { type: Type.STRING } : { type: Type.MESSAGE, typeName };
  return {
    name: `${name}.proto`,
    package: name,
    syntax: "proto3",
    dependency: [...dependency],
    messageType: [{ name: "Text", field: [{ name: "a_text", number: 1, label: 1, ...typed }] }],
    service: [{ name: "Service", method: [{ name: "Get", inputType: `.${name}.Text`, outputType: `.${name}.Text` }] }],
  };
}

const complete = fileOf("complete", undefined, ["openapi/v3/annotations.proto"]);
const other = fileOf("other", ".third.Text", ["third.proto"]);
const third = fileOf("third", undefined, []);

test("a service without its message type is omitted until a reload succeeds", async () => {
  await using upstream = await startReflectingServer([complete, other]);
  const reports: ReloadReport[] = [];
  const upstreams = [{ upstream: `http://${upstream.address}`, descriptors: "reflection" }] as const;
  const opening = createProxy({ upstreams, onReload: (report) => void reports.push(report) });
  const proxy = await within(opening, "the descriptors");
  onTestFinished(() => proxy.close());
  const served = (): readonly string[] => proxy.services.map(({ typeName }) => typeName).toSorted();
  expect(served()).toEqual(["complete.Service"]);
  expect(proxy.omitted).toEqual([
    `${upstream.address}: other.Service: the type third.Text of a field of other.Text is missing; missing import: third.proto`,
  ]);
  // The JSON names are omitted, as by the C++, Java and Python reflection.
  expect(proxy.services[0]?.methods[0]?.input.fields[0]?.jsonName).toBe("aText");
  upstream.files = [complete, other, third];
  await proxy.reload();
  expect([served(), proxy.omitted]).toEqual([["complete.Service", "other.Service", "third.Service"], []]);
  expect(reports.map(({ added, removed }) => [added.length, removed.length])).toEqual([[2, 0]]);
});

async function openWithSource(
  source: Partial<DescriptorSource> & Pick<DescriptorSource, "read">,
  more: readonly ProxiedUpstreamOptions[] = [],
) {
  const proxy = await createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: source }, ...more] });
  onTestFinished(() => proxy.close());
  const served = (): readonly string[] => proxy.services.map(({ typeName }) => typeName).toSorted();
  return { proxy, served };
}

const missing = "other.Service: the type third.Text of a field of other.Text is missing; missing import: third.proto";
const added = fileOf("added", undefined, []);

test.each([
  ["loses a message type of a service", [complete, other, added], [], missing],
  ["loses the file of a service", [complete, third, added], ["other.Service"], "other.Service is not described"],
  [
    "loses a message type of the only service",
    [other],
    [],
    `cannot use the descriptors: they have no service to proxy; ${missing}`,
  ],
])("a reload that %s fails", async (_name, files, unread, problem) => {
  let set = setOfFiles(complete, other, third);
  let omitted: ReadonlyMap<string, string> = new Map();
  const { proxy, served } = await openWithSource({ read: () => Promise.resolve(set), omitted: () => omitted });
  const before = served();
  set = setOfFiles(...files);
  omitted = new Map(unread.map((name) => [name, `${name} is not described`]));
  for (let i = 0; i < 2; i += 1) {
    const problems = [`127.0.0.1:1: ${problem}`];
    expect(await proxy.reload()).toEqual({ isChanged: false, added: [], removed: [], problems });
    expect([served(), proxy.omitted]).toEqual([before, []]);
  }
  // Once the type is available, the other changes are used too.
  set = setOfFiles(complete, other, third, added);
  omitted = new Map();
  expect(await proxy.reload()).toEqual({ isChanged: true, added: ["/added.Service/Get"], removed: [], problems: [] });
});

test("services that the upstream no longer lists are removed", async () => {
  let set = setOfFiles(complete, other, third);
  const { proxy, served } = await openWithSource({ read: () => Promise.resolve(set) });
  set = setOfFiles(complete);
  expect(await proxy.reload()).toMatchObject({ removed: ["/third.Service/Get", "/other.Service/Get"], problems: [] });
  expect(served()).toEqual(["complete.Service"]);
});

test("a service that was omitted at the start does not prevent reloads", async () => {
  let set = setOfFiles(complete, other);
  const { proxy, served } = await openWithSource({ read: () => Promise.resolve(set) });
  set = setOfFiles(complete, other, added);
  expect(await proxy.reload()).toEqual({ isChanged: true, added: ["/added.Service/Get"], removed: [], problems: [] });
  expect([served(), proxy.omitted]).toEqual([["added.Service", "complete.Service"], [`127.0.0.1:1: ${missing}`]]);
});

test("services omitted by a failed read do not prevent other upstreams' reloads", async () => {
  const unreachable = new ConnectError("unreachable", Code.Unavailable);
  let read = (): Promise<Uint8Array> => Promise.resolve(setOfFiles(complete, other, third));
  let omitted: ReadonlyMap<string, string> = new Map();
  let set = setOfFiles(fileOf("second", undefined, []));
  const { proxy, served } = await openWithSource({ read: () => read(), omitted: () => omitted }, [
    { upstream: "http://127.0.0.1:2", descriptors: { read: () => Promise.resolve(set) } },
  ]);
  read = () => Promise.resolve(setOfFiles(complete, third));
  omitted = new Map([["other.Service", "other.Service is not described"]]);
  expect(await proxy.reload()).toMatchObject({ problems: ["127.0.0.1:1: other.Service is not described"] });
  read = () => Promise.reject(unreachable);
  set = setOfFiles(fileOf("second", undefined, []), added);
  expect(await proxy.reload()).toMatchObject({ added: ["/added.Service/Get"], removed: [] });
  expect(served()).toContain("other.Service");
});

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
    expect([reports.length, reports[0]]).toMatchObject([1, { removed: [], problems: [] }]);
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
  const later = await startReflecting([StreamService], path);
  await expect.poll(call).toBe(200);
  await proxy.close();
  await later[Symbol.asyncDispose]();
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
