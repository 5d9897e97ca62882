import { describe, expect, test } from "vitest";
import { useFakeClock } from "../../../../../testing/src/fake-clock.ts";
import { type Field, type HttpRequest, nextEvent, openHttp1, startGreenhouse, within } from "@protoport/testing";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";

function water(header: readonly Field[], body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json, ...header], body: Buffer.from(body) };
}

test("a client that does not read, but keeps sending a body, is disconnected without a process warning", async () => {
  const clock = useFakeClock();
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  const closing = Promise.withResolvers<{ readonly closed: Promise<unknown> }>();
  await using greenhouse = await startGreenhouse(
    {},
    {
      // More than the kernel buffers for a client that does not read.
      endpoints: [{ path: "/page", open: false, handle: () => ({ httpStatus: 200, body: "o".repeat(18_000_000) }) }],
      limits: { idleTimeoutMs: 500 },
      admit: () => closing.resolve({ closed: nextEvent("close") }),
    },
  );
  process.on("warning", onWarning);
  using connection = await openHttp1(greenhouse.address);
  connection.socket.pause();
  connection.write("GET /page HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  connection.write(`400\r\n${"x".repeat(1024)}\r\n`.repeat(2048));
  const { closed } = await within(closing.promise, "the request");
  await clock.passUntil(closed, "the connection to be closed");
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});

describe("a client that pipelines requests", () => {
  test("has 100 requests served one at a time", async () => {
    const requests = 100;
    const unread = Promise.withResolvers<unknown>();
    let running = 0;
    let mostRunning = 0;
    const handlers = {
      waterBed: async () => {
        mostRunning = Math.max(mostRunning, ++running);
        await unread.promise;
        running--;
        return {};
      },
    };
    await using greenhouse = await startGreenhouse(handlers, {
      admit: () => {
        if (mostRunning === 0) unread.resolve(nextEvent("pause"));
      },
    });
    using connection = await openHttp1(greenhouse.address);
    const body = JSON.stringify({ note: "n".repeat(20_000) });
    for (let i = 0; i < requests; i++) connection.request(water([], body));
    for (let i = 0; i < requests; i++) expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    expect(mostRunning).toBe(1);
  });

  test.each([
    // Each case sends several hundred KiB.
    ["many requests and a body with Content-Length", 2000, 30, "content-length: 2", "{}"],
    ["large requests and a chunked body", 100, 4000, "transfer-encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"],
  ])("gets every response to %s after reading was paused", async (_what, count, paddingBytes, framing, body) => {
    const slow = Promise.withResolvers<void>();
    const paused = Promise.withResolvers<unknown>();
    const endpoint = { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "" }) };
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({ note: "n" }) },
      {
        admit: async () => {
          paused.resolve(nextEvent("pause"));
          await slow.promise;
        },
        endpoints: [endpoint],
      },
    );
    using connection = await openHttp1(greenhouse.address);
    const page = `GET /page HTTP/1.1\r\nhost: x\r\nx-padding: ${"x".repeat(paddingBytes)}\r\n\r\n`;
    const fields = `host: x\r\ncontent-type: application/json\r\n${framing}`;
    connection.request(water([], "{}"));
    connection.write(page.repeat(count));
    connection.write(`POST ${path} HTTP/1.1\r\n${fields}\r\n\r\n`);
    await within(paused.promise, "the server to read no more");
    slow.resolve();
    for (let i = 0; i <= count; i++) expect((await connection.readResponse()).httpStatus).toBe(200);
    connection.write(body);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });
});
