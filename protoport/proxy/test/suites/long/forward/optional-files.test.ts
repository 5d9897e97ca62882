import { expect, onTestFinished, test } from "vitest";
import { createProxy } from "../../../../src/create-proxy.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { type FileInit, startReflectingServer } from "@protoport/testing/proxy";
import { optionalFiles, withNeedingService, wholeService } from "../../../../../testing/src/gateway/optional-files.ts";

// Files that only options need may be missing or invalid in an upstream's reflection. protoport/gateway/src/protobuf tests the same
// files in descriptor sets.

async function servedBy(files: readonly FileInit[]): Promise<readonly string[]> {
  const upstream = await startReflectingServer(files);
  onTestFinished(() => upstream[Symbol.asyncDispose]());
  const upstreams = [{ upstream: `http://${upstream.address}`, descriptors: "reflection" }] as const;
  const proxy = await within(createProxy({ upstreams }), "the descriptors");
  onTestFinished(() => proxy.close());
  return proxy.services.map(({ typeName }) => typeName);
}

test.each(optionalFiles)("with an unneeded file that is $name, a reflected service is proxied", async ({ files }) => {
  expect(await servedBy([wholeService, ...files])).toEqual(["a.Whole"]);
});

test.each(optionalFiles)(
  "if the file of its type is $name, a reflected service is not proxied",
  async ({ files, problem }) => {
    const served = servedBy([withNeedingService, ...files]);
    if (problem === undefined) expect(await served).toEqual(["a.Whole"]);
    else await expect(served).rejects.toThrow(problem);
  },
);
