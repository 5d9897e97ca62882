import { expect, test } from "vitest";
import { openHttp1, startGreenhouse, within } from "@protoport/testing";

test.concurrent.each(
  // oxfmt-ignore
  [
    ["event stream", "text/event-stream", "GET /readings HTTP/1.1", ":\n\n",
      'retry: 3000\ndata: {"sensor":"late"}\n\nevent: end\ndata: {}\n\n'],
    ["JSON array", "application/json", "GET /readings HTTP/1.1", " ", '[{"sensor":"late"}]'],
    ["JSON array with a streamed request", "application/json", "POST /climate HTTP/1.1\r\nTransfer-Encoding: chunked",
      " ", '[{"sensor":"late"}]'],
  ],
)(
  "an idle %s sends a heartbeat every 15 s",
  async (_name, accept, request, beat, rest) => {
    const asked = Promise.withResolvers<void>();
    const selector = "greenhouse.v1.GreenhouseService";
    await using greenhouse = await startGreenhouse(
      {
        async *watchReadings() {
          await asked.promise;
          yield { sensor: "late" };
        },
        async *controlClimate() {
          await asked.promise;
          yield { sensor: "late" };
        },
      },
      {
        rest: {
          rules: [
            { selector: `${selector}.WatchReadings`, pattern: { case: "get", value: "/readings" } },
            { selector: `${selector}.ControlClimate`, pattern: { case: "post", value: "/climate" }, body: "*" },
          ],
        },
      },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${request}\r\nHost: a\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`);
    const seen: string[] = [];
    const chunk = `\r\n${beat.length.toString(16)}\r\n${beat}\r\n`;
    const second = new Promise<void>((resolve) => {
      connection.socket.on("data", (bytes: Buffer) => {
        seen.push(bytes.toString());
        if (seen.join("").split(chunk.slice(2)).length > 2) resolve();
      });
    });
    await within(second, "two heartbeats", 240_000);
    asked.resolve();
    await connection.readToEnd();
    const [head = "", ...body] = seen.join("").split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    // Removes the chunk lengths.
    const text = body.join("\r\n\r\n").replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, "");
    expect(text.replace(/\r\n$/, "")).toBe(`${beat}${beat}${rest}`);
  },
  300_000,
);
