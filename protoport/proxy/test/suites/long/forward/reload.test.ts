import { create, type DescFile, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, KitchenSink, Shelves, startGreenhouse } from "@protoport/testing/proxy";
import { createProxy, type ReloadReport } from "../../../../src/create-proxy.ts";
import { within } from "../../../../../testing/src/deadline.ts";

const getReading = "/greenhouse.v1.GreenhouseService/GetReading";

/** Returns a file's descriptors, with only the selected RPCs. */
function withMethods(file: DescFile, isSelected: (name: string) => boolean): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSetOf(file));
  for (const { service } of set.file) {
    for (const each of service) each.method = each.method.filter(({ name }) => isSelected(name));
  }
  return toBinary(FileDescriptorSetSchema, set);
}

test("a descriptor source that throws is read again by each reload", async () => {
  const first = withMethods(GreenhouseService.file, (name) => name === "GetReading");
  let read = (): Promise<Uint8Array> => Promise.resolve(first);
  const proxy = await createProxy({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: { read: () => read() } }],
  });
  for (const name of ["WaterBed", "WatchReadings"]) {
    read = () => {
      throw new Error("no file");
    };
    expect(await proxy.reload()).toMatchObject({ added: [], removed: [], problems: ["no file"] });
    const next = withMethods(GreenhouseService.file, (each) => each === name);
    read = () => Promise.resolve(next);
    const { added, problems } = await proxy.reload();
    expect({ added, problems }).toEqual({ added: [`/greenhouse.v1.GreenhouseService/${name}`], problems: [] });
  }
  await proxy.close();
});

test("a reload applies new descriptors, and keeps the previous if reading fails", async () => {
  await using upstream = await startGreenhouse({ getReading: ({ sensor }) => ({ sensor }), waterBed: () => ({}) });
  let set = withMethods(GreenhouseService.file, (name) => name === "GetReading");
  let changed: (() => void) | undefined;
  const reports: ReloadReport[] = [];
  let onReported: (() => void) | undefined;
  const proxy = await createProxy({
    upstreams: [
      {
        upstream: `http://127.0.0.1:${upstream.address.port}`,
        descriptors: {
          read: () => (set.byteLength === 0 ? Promise.reject(new Error("no file\nat all")) : Promise.resolve(set)),
          watch: (call) => {
            changed = call;
            return () => {
              changed = undefined;
            };
          },
        },
      },
      { upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(KitchenSink.file) },
    ],
    onReload: (report) => {
      reports.push(report);
      onReported?.();
    },
  });
  const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
  const statuses = async (): Promise<readonly number[]> => {
    const responses = [
      await fetch(`http://127.0.0.1:${port}/sensors/a/reading`),
      await fetch(`http://127.0.0.1:${port}/beds/7:water`, { method: "POST" }),
    ];
    return responses.map(({ status }) => status);
  };
  expect(await statuses()).toEqual([200, 404]);

  // Unchanged descriptors are not reported.
  expect(await proxy.reload()).toEqual({ isChanged: false, added: [], removed: [], problems: [] });
  expect(reports).toEqual([]);

  set = withMethods(GreenhouseService.file, (name) => name === "GetReading" || name === "WaterBed");
  const { promise, resolve } = Promise.withResolvers<void>();
  onReported = resolve;
  changed?.();
  await within(promise, "a reload");
  const added = ["/greenhouse.v1.GreenhouseService/WaterBed"];
  expect(reports).toEqual([{ isChanged: true, added, removed: [], problems: [] }]);
  expect(await statuses()).toEqual([200, 200]);

  for (const [bytes, problem] of [
    [Buffer.from("no descriptors"), "they are not a binary google.protobuf.FileDescriptorSet"],
    [Buffer.alloc(0), "no file"],
    [withMethods(GreenhouseService.file, () => true).subarray(0, -3), "they are not a binary"],
  ] as const) {
    set = bytes;
    const { problems } = await proxy.reload();
    expect(problems.join("\n")).toContain(problem);
    expect(await statuses()).toEqual([200, 200]);
  }

  set = withMethods(GreenhouseService.file, (name) => name === "WaterBed");
  expect(await proxy.reload()).toEqual({ isChanged: true, added: [], removed: [getReading], problems: [] });
  expect(await statuses()).toEqual([404, 200]);
  expect(proxy.services[0]?.methods.map(({ name }) => name)).toEqual(["WaterBed"]);
  await proxy.close();
  expect(changed).toBeUndefined();
});

test.each(
  // oxfmt-ignore
  [
    ["are not a FileDescriptorSet", [Buffer.from("x")], "not a binary google.protobuf.FileDescriptorSet"],
    ["contain no service", [toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema))],
      "they have no service to proxy"],
    ["contain no service with all its types",
      [toBinary(FileDescriptorSetSchema,
        create(FileDescriptorSetSchema,
          { file: [{ name: "a",
            service: [{ name: "A", method: [{ name: "Get", inputType: ".B", outputType: ".B" }] }] }] }))],
      "127.0.0.1:1: cannot use the descriptors: they have no service to proxy; A: the type B is missing"],
    ["contain names that protoc would reject",
      [toBinary(FileDescriptorSetSchema,
        create(FileDescriptorSetSchema, { file: [{ name: "a", package: "a;b", service: [{ name: "A" }] }] }))],
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
