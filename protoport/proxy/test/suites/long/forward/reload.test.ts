import { type DescFile, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, KitchenSink, Shelves } from "@protoport/testing/proxy";
import { createProxy } from "../../../../src/create-proxy.ts";
import { setOfFiles } from "../../../support/set-of-files.ts";

/** Returns a file's descriptors, with only the selected RPCs. */
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
  expect(new Set(await Promise.all(others))).toEqual(
    new Set([{ isChanged: false, added: [], removed: [], problems: [] }]),
  );
  await proxy.close();
});

test("all upstreams' problems are reported together", async () => {
  const upstreams = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map((upstream) => ({
    upstream,
    descriptors: Buffer.from("x"),
  }));
  const failed = createProxy({ upstreams });
  await expect(failed).rejects.toThrow("127.0.0.1:1: cannot use the descriptors");
  await expect(failed).rejects.toThrow("127.0.0.1:2: cannot use the descriptors");
});
