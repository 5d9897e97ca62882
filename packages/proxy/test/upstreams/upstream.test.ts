import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openGreenhouse, respondWatered, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
import { startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("a server whose address returns is connected to without its earlier backoff", async () => {
  const gone = await startScriptedServer({});
  await gone[Symbol.asyncDispose]();
  const port = Number(new URL(gone.baseUrl).port);
  let host = "127.0.0.1";
  await using client = openGreenhouse({
    addresses: `dns:orders.example:${port}`,
    resolveEveryMs: 1,
    lookup: async () => [{ address: host }],
  });
  const callAt = (address: string): Promise<string> => {
    host = address;
    vi.advanceTimersByTime(2);
    return wateringOf(client);
  };
  expect(await callAt("127.0.0.1")).toContain("cannot connect");
  expect(await callAt("127.0.0.2")).toContain("cannot connect");
  await using _ = await startScriptedServer(respondWatered, { host: "127.0.0.1", port });
  expect(await callAt("127.0.0.1")).toBe("ok");
});
