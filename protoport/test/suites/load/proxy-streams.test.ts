import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport } from "../../../proxy/src/client/index.ts";
// oxfmt-ignore
import { createTempFolder, createTestGateway, descriptorSetOf, projectFolder, startNode, waitLimitMs, within
} from "@protoport/testing";

const streamCount = 10_000;

test(
  `a GET through the proxy succeeds while ${streamCount} streams are open`,
  { timeout: 10 * waitLimitMs },
  async () => {
    const upstream = createTestGateway({
      routes: (router) => {
        router.service(GreenhouseService, {
          getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }),
          // One reading, and no more until the caller cancels.
          async *watchReadings({ sensor }, { signal }) {
            yield { sensor };
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          },
        });
      },
    });
    await using closing = new AsyncDisposableStack();
    closing.defer(() => upstream.close());
    const { port } = await upstream.listen({ host: "127.0.0.1", port: 0 });
    const descriptors = closing.use(createTempFolder()).write("set.binpb", descriptorSetOf(GreenhouseService.file));
    const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
    // oxfmt-ignore
    const words = [
      "--upstream", `http://127.0.0.1:${port}`, "--descriptors", descriptors, "--port", "0", "--admin-port", "0",
    ];
    const proxy = closing.use(startNode([main, ...words], projectFolder));
    const [, admin = ""] = await proxy.find(/^health and metrics at (\S+)/m);
    const [, baseUrl = ""] = await proxy.find(/^(\S+) serves/m);
    const client = createClient(GreenhouseService, closing.use(createGrpcTransport({ baseUrl })));
    const controller = new AbortController();
    const { signal } = controller;
    const opened = Array.from({ length: streamCount }, async (_, at) => {
      const readings = client.watchReadings({ sensor: String(at) }, { signal })[Symbol.asyncIterator]();
      const first = await readings.next();
      // Reads the next message, because otherwise the client does not detect the stream's end.
      readings.next().catch(() => undefined);
      return first.value?.sensor === String(at);
    });
    const outcomes = await within(Promise.all(opened), "all streams", 5 * waitLimitMs);
    expect(outcomes.filter((isOpen) => !isOpen)).toHaveLength(0);
    const response = await within(fetch(`${baseUrl}/sensors/a/reading`), "a GET");
    expect([response.status, await response.json()]).toEqual([200, { sensor: "a", degreesCelsius: 21 }]);
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    const upstreamMetrics = metrics.split("\n").filter((line) => /^gateway_upstream_(?!connections)/.test(line));
    const label = `upstream="http://127.0.0.1:${port}"`;
    expect(upstreamMetrics).toEqual([
      `gateway_upstream_requests_active{${label}} ${streamCount}`,
      `gateway_upstream_requests_waiting{${label}} 0`,
      ...["queue_full", "queue_timeout", "unsent_bytes"].map(
        (reason) => `gateway_upstream_refusals_total{${label},reason="${reason}"} 0`,
      ),
    ]);
    controller.abort();
  },
);
