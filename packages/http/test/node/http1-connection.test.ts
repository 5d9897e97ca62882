import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { fieldValue } from "../../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../../testing/src/http/http1-connection.ts";
import { acceptedSocket, type TestGreenhouse } from "../../../testing/src/gateway/greenhouse.ts";
import { startOnNode } from "../../../testing/src/gateway/on-node.ts";

const head = "POST /beds/7:water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
const wholeCall = `${head}content-length: 2\r\n\r\n{}`;
const never = 1_000_000;

/** Advances the server's clock in steps, because each check sees only the time at which it runs. */
async function advance(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 25) {
    vi.advanceTimersByTime(25);
    await nextTurn();
  }
}

async function connected({ gateway }: TestGreenhouse): Promise<void> {
  await expect.poll(() => gateway.load.connections.http1).toBe(1);
}

/** Waits until the server has read a number of bytes. */
async function received(bytes: number): Promise<void> {
  await expect.poll(() => acceptedSocket().bytesRead).toBe(bytes);
}

describe("a timeout on node:http", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
  });

  test.each([
    { name: "requestTimeoutMs if it is shorter", limits: { headerTimeoutMs: never, requestTimeoutMs: 400 } },
    { name: "headerTimeoutMs if it is shorter", limits: { headerTimeoutMs: 400, requestTimeoutMs: never } },
  ])("for a header is $name", async ({ limits }) => {
    await using greenhouse = await startOnNode({}, { limits: { ...limits, idleTimeoutMs: never } });
    using connection = await openHttp1(greenhouse.address);
    connection.write("POST");
    await connected(greenhouse);
    await advance(300);
    expect(greenhouse.gateway.load.requests.http1).toBe(0);
    await advance(400);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 408 });
  });

  test.each([
    { name: "first", sent: "" },
    { name: "second", sent: wholeCall },
  ])("for the $name header starts with its first byte", async ({ sent }) => {
    const limits = { headerTimeoutMs: 400, idleTimeoutMs: never };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits });
    using connection = await openHttp1(greenhouse.address);
    // Without any bytes, the connection is not assigned to a server for HTTP/1.1.
    connection.write(sent === "" ? "\r\n\r\n" : sent);
    if (sent !== "") expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    await connected(greenhouse);
    await advance(sent === "" ? 0 : 300);
    connection.write(head);
    await received((sent === "" ? 4 : sent.length) + head.length);
    await advance(300);
    connection.write("content-length: 2\r\n\r\n{}");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("for a body starts when its header is complete", async () => {
    const limits = { headerTimeoutMs: never, requestTimeoutMs: 400, idleTimeoutMs: never };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits });
    using connection = await openHttp1(greenhouse.address);
    connection.write(head);
    await connected(greenhouse);
    await received(head.length);
    await advance(300);
    connection.write("content-length: 2\r\n\r\n");
    await expect.poll(() => greenhouse.gateway.load.requests.http1).toBe(1);
    await advance(300);
    connection.write("{}");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("for idle connections starts at the end of a long call", async () => {
    const slow = Promise.withResolvers<object>();
    await using greenhouse = await startOnNode({ waterBed: () => slow.promise }, { limits: { idleTimeoutMs: 400 } });
    using connection = await openHttp1(greenhouse.address);
    connection.write(wholeCall);
    await expect.poll(() => greenhouse.gateway.load.requests.http1).toBe(1);
    await advance(1000);
    slow.resolve({});
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    await expect.poll(() => greenhouse.gateway.load.requests.http1).toBe(0);
    await advance(300);
    connection.write(wholeCall);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test.each([
    { name: "a second", idleTimeoutMs: never, openMs: 900, closedMs: 200 },
    { name: "idleTimeoutMs if it is shorter", idleTimeoutMs: 400, openMs: 0, closedMs: 600 },
  ])("for idle connections above the maximum age is $name", async ({ idleTimeoutMs, openMs, closedMs }) => {
    const limits = { idleTimeoutMs, requestTimeoutMs: 400 };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits }, { maxConnectionAgeMs: 100 });
    using connection = await openHttp1(greenhouse.address);
    connection.write(wholeCall);
    // The response ends the first wait, and the connection retires after it.
    expect(fieldValue((await connection.readResponse()).header, "connection")).toBe("keep-alive");
    await advance(openMs);
    expect(greenhouse.gateway.load.connections.http1).toBe(1);
    await advance(closedMs);
    expect(await connection.atEnd()).toBe(true);
  });

  test("for unread responses does not apply to a client that reads slowly", async () => {
    const text = "orders".repeat(100_000);
    await using greenhouse = await startOnNode(
      {
        async *watchReadings() {
          for (;;) yield { sensor: text };
        },
      },
      { limits: { idleTimeoutMs: 400 } },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.socket.pause();
    connection.write(
      "POST /greenhouse.v1.GreenhouseService/WatchReadings HTTP/1.1\r\nhost: x\r\n" +
        "content-type: application/connect+json\r\ncontent-length: 7\r\n\r\n\0\0\0\0\x02{}",
    );
    const { socket } = connection;
    for (let round = 0; round < 6; round += 1) {
      await expect.poll(() => greenhouse.gateway.load.backlogBytes).toBeGreaterThan(0);
      const { bytesWritten } = acceptedSocket();
      socket.resume();
      await expect.poll(() => acceptedSocket().bytesWritten).toBeGreaterThan(bytesWritten + text.length);
      socket.pause();
      await advance(200);
    }
    expect(greenhouse.gateway.load.connections.http1).toBe(1);
  });
});

describe("a request on node:http", () => {
  test("may have a header and a URL of the maximum size", async () => {
    await using greenhouse = await startOnNode({}, { limits: { headerBytes: 2000, urlBytes: 4000 } });
    using connection = await openHttp1(greenhouse.address);
    connection.write(`GET /${"x".repeat(3999)} HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(2000 - 37 - 33)}\r\n\r\n`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 404 });
  });

  test.each([
    { idleTimeoutMs: 30_000, value: "timeout=30" },
    { idleTimeoutMs: Number.POSITIVE_INFINITY, value: "timeout=2147482" },
  ])("gets Keep-Alive: $value with an idleTimeoutMs of $idleTimeoutMs", async ({ idleTimeoutMs, value }) => {
    const warnings: Error[] = [];
    const listener = (warning: Error): void => void warnings.push(warning);
    process.on("warning", listener);
    onTestFinished(() => void process.off("warning", listener));
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits: { idleTimeoutMs } });
    using connection = await openHttp1(greenhouse.address);
    for (let call = 0; call < 2; call += 1) {
      connection.write(wholeCall);
      expect(fieldValue((await connection.readResponse()).header, "keep-alive")).toBe(value);
    }
    await nextTurn();
    expect(warnings).toEqual([]);
  });
});
