import type { MessageInitShape } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import type { DescriptorSource, ProxiedUpstreamOptions, ReloadReport } from "../../../../src/create-proxy.ts";
import { createProxy } from "../../../../src/create-proxy.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { startReflectingServer } from "../../../../../testing/src/gateway/reflecting-server.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";

// If an upstream's reflection lacks files, services that do not need them are still proxied.

type FileInit = MessageInitShape<typeof FileDescriptorProtoSchema>;

/** Returns a file with a service `NAME.Service`, whose message has a field with a type from another file. */
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
  const proxy = await within(
    createProxy({
      upstreams: [{ upstream: `http://${upstream.address}`, descriptors: "reflection" }],
      onReload: (report) => void reports.push(report),
    }),
    "the descriptors",
  );
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

/** Opens a proxy with a custom source. */
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

test("an upstream that was never read is retried after a failed reload", async () => {
  const unreachable = new ConnectError("unreachable", Code.Unavailable);
  let set = setOfFiles(complete, other, third);
  let count = 0;
  const second = (): Promise<Uint8Array> => {
    count += 1;
    return count < 3 ? Promise.reject(unreachable) : Promise.resolve(setOfFiles(added));
  };
  const { proxy, served } = await openWithSource({ read: () => Promise.resolve(set) }, [
    { upstream: "http://127.0.0.1:2", descriptors: { read: second } },
  ]);
  set = setOfFiles(complete, other);
  expect((await proxy.reload()).problems).toContain(`127.0.0.1:1: ${missing}`);
  set = setOfFiles(complete, other, third);
  // Happens without a call of reload().
  await expect.poll(served, { timeout: 20_000 }).toContain("added.Service");
});
