import { expect, onTestFinished, test } from "vitest";
import { createProxy, type ProxyGateway } from "../../../../src/create-proxy.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import type { FileInit } from "../../../../../testing/src/gateway/file-init.ts";
import {
  optionalFiles,
  setOfFiles,
  withNeedingService,
  wholeService,
} from "../../../../../testing/src/gateway/optional-files.ts";
import { startReflectingServer } from "../../../../../testing/src/gateway/reflecting-server.ts";

// Files that only options need may be missing or invalid, in a descriptor set and in an upstream's reflection.

const sources: readonly {
  readonly source: string;
  readonly open: (files: readonly FileInit[]) => Promise<ProxyGateway>;
}[] = [
  {
    source: "a descriptor set",
    open: (files) => createProxy({ upstreams: [{ upstream: "http://127.0.0.1:1", descriptors: setOfFiles(files) }] }),
  },
  {
    source: "reflection",
    open: async (files) => {
      const upstream = await startReflectingServer(files);
      onTestFinished(() => upstream[Symbol.asyncDispose]());
      return await createProxy({ upstreams: [{ upstream: `http://${upstream.address}`, descriptors: "reflection" }] });
    },
  },
];

const cases = sources.flatMap((source) => optionalFiles.map((each) => ({ ...source, ...each })));

async function servedBy(opening: Promise<ProxyGateway>): Promise<readonly string[]> {
  const proxy = await within(opening, "the descriptors");
  onTestFinished(() => proxy.close());
  return proxy.services.map(({ typeName }) => typeName);
}

test.each(cases)("even if an unneeded file is $name, a service from $source is proxied", async ({ open, files }) => {
  expect(await servedBy(open([wholeService, ...files]))).toEqual(["a.Whole"]);
});

test.each(cases)("if its type's file is $name, a service from $source is omitted", async ({ open, files, problem }) => {
  const served = servedBy(open([withNeedingService, ...files]));
  if (problem === undefined) expect(await served).toEqual(["a.Whole"]);
  else await expect(served).rejects.toThrow(problem);
});
