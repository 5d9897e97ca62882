import { expect, onTestFinished, test } from "vitest";
import { descriptorSetOf, GreenhouseService } from "@protoport/testing/proxy";
import { createProxy } from "../../src/create-proxy.ts";

test("a method without a known route gets 503 while an upstream is unreachable", async () => {
  const upstream = "http://127.0.0.1:1";
  const proxy = await createProxy({
    upstreams: [
      { upstream, descriptors: descriptorSetOf(GreenhouseService.file) },
      { upstream, descriptors: "reflection" },
    ],
  });
  onTestFinished(() => proxy.close());
  const response = await proxy.fetch(new Request("http://a/beds/7:water", { method: "DELETE" }));
  expect(response.status).toBe(503);
});
