import { type DescFile, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { expect, test, onTestFinished } from "vitest";
// oxfmt-ignore
import { descriptorSetOf, GreenhouseService, KitchenSink, Shelves, type FileInit, startReflectingServer
} from "@protoport/testing/proxy";
// oxfmt-ignore
import { createProxy, type DescriptorSource, type ProxiedUpstreamOptions, type ReloadReport
} from "../../../../src/create-proxy.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";
import { Code, ConnectError } from "@connectrpc/connect";
import { within } from "../../../../../testing/src/deadline.ts";

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
  expect((await proxy.reload()).added).toHaveLength(4);
  expect(faults).toEqual(["ERR_CALLBACK_FAILED Error: no log"]);
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
