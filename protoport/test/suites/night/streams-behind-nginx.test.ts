import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import { fieldValue, freePort, openResponse, startGreenhouse, TextCollector } from "@protoport/testing";
import { nginxProgram, startBalancerProcess } from "../../../testing/src/process/balancer-process.ts";

/** nginx as installed: it asks in HTTP/1.0, so messages have no chunks, and its buffer of 4 KiB would keep them. */
function startNginx(port: number, serverPort: number): Promise<AsyncDisposable> {
  const server = `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${serverPort}; } }`;
  return startBalancerProcess({ ...nginxProgram(server), ports: [port] });
}

test.for([["application/x-ndjson"], ["application/jsonl"], ["application/json"], ["text/event-stream"]] as const)(
  "behind nginx without a setting, each message of %s arrives before the next is sent",
  async ([accept]) => {
    const next = new EventEmitter();
    const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
    const rules = [{ selector, pattern: { case: "get" as const, value: "/sensors/{sensor}/readings" } }];
    const watchReadings = async function* ({ sensor }: { sensor: string }) {
      for (const at of [1, 2, 3]) {
        yield { sensor: `${sensor}-${at}` };
        await once(next, sensor);
      }
    };
    await using greenhouse = await startGreenhouse({ watchReadings }, { rest: { rules } });
    const port = await freePort();
    await using running = new AsyncDisposableStack();
    running.use(await startNginx(port, greenhouse.address.port));
    const address = { ...greenhouse.address, port };
    const open = (sensor: string) =>
      openResponse({ address, gateway: greenhouse.gateway }, "1.1", `/sensors/${sensor}/readings`, [
        ["accept", accept],
      ]);
    using first = await open("a");
    using second = await open("b");
    expect(fieldValue(first.header, "content-type")).toBe(accept);
    const [a, b] = [new TextCollector(first.body), new TextCollector(second.body)];
    for (const at of [1, 2, 3]) {
      await a.until(`a-${at}`);
      await b.until(`b-${at}`);
      next.emit("a");
      next.emit("b");
    }
  },
);
