import { expect, test } from "vitest";
import { openHttp1 } from "../support/carriers/http1-connection.ts";
import { within } from "../support/deadline.ts";
import { startGreenhouse } from "../support/gateway/greenhouse.ts";

test("a stream of Server-Sent Events that has nothing to say sends a comment every 15 s, before its first message too", async () => {
  const asked = Promise.withResolvers<void>();
  const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
  await using greenhouse = await startGreenhouse(
    {
      async *watchReadings() {
        await asked.promise;
        yield { sensor: "late" };
      },
    },
    { rest: { rules: [{ selector, pattern: { case: "get", value: "/readings" } }] } },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.write("GET /readings HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n");
  const seen: string[] = [];
  const second = new Promise<void>((resolve) => {
    connection.socket.on("data", (chunk: Buffer) => {
      seen.push(chunk.toString());
      if (seen.join("").split(":\n\n").length > 2) resolve();
    });
  });
  await within(second, "two heartbeats", 240_000);
  asked.resolve();
  await connection.readToEnd();
  const text = seen.join("");
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text).toMatch(/:\n\n[^]*:\n\n[^]*retry: 3000\ndata: \{"sensor":"late"\}\n\n[^]*event: end\ndata: \{\}\n\n/);
}, 300_000);
