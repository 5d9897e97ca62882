import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type FakeClock, useFakeClock } from "../../../../testing/src/fake-clock.ts";
import { fieldValue } from "../../../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../../../testing/src/http/http1-connection.ts";
import { acceptedSocket, type TestGreenhouse } from "../../../../testing/src/gateway/greenhouse.ts";
import { startOnNode } from "../../../../testing/src/gateway/on-node.ts";

const head = "POST /beds/7:water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
const wholeCall = `${head}content-length: 2\r\n\r\n{}`;
const never = 1_000_000;

let clock: FakeClock;

/** Advances the server's clock in steps, because each check sees only the time at which it runs. */
async function advance(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 25) await clock.pass(25);
}

async function connected({ gateway }: TestGreenhouse): Promise<void> {
  await clock.waitFor(() => gateway.load.connections.http1 === 1, "the connection");
}

/** Waits until the server has read a number of bytes. */
async function received(bytes: number): Promise<void> {
  await clock.waitFor(() => acceptedSocket().bytesRead === bytes, `${String(bytes)} bytes`);
}

describe("a timeout on node:http", () => {
  beforeEach(() => void (clock = useFakeClock()));

  test.each([
    { name: "requestTimeoutMs if it is shorter", limits: { headerTimeoutMs: never, requestTimeoutMs: 400 } },
    { name: "headerTimeoutMs if it is shorter", limits: { headerTimeoutMs: 400, requestTimeoutMs: never } },
  ])("is $name for a header", async ({ limits }) => {
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
    await clock.waitFor(() => greenhouse.gateway.load.requests.http1 === 1, "the request");
    await advance(300);
    connection.write("{}");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("for idle connections starts at the end of a long call", async () => {
    const slow = Promise.withResolvers<object>();
    await using greenhouse = await startOnNode({ waterBed: () => slow.promise }, { limits: { idleTimeoutMs: 400 } });
    using connection = await openHttp1(greenhouse.address);
    connection.write(wholeCall);
    await clock.waitFor(() => greenhouse.gateway.load.requests.http1 === 1, "the request");
    await advance(1000);
    slow.resolve({});
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    await clock.waitFor(() => greenhouse.gateway.load.requests.http1 === 0, "the request");
    await advance(300);
    connection.write(wholeCall);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
    await advance(600);
    expect(acceptedSocket().writableEnded).toBe(true);
  });

  test.each([
    { name: "a second", idleTimeoutMs: never, openMs: 900, closedMs: 200 },
    { name: "idleTimeoutMs if it is shorter", idleTimeoutMs: 400, openMs: 0, closedMs: 600 },
  ])("is $name for idle connections above the maximum age", async ({ idleTimeoutMs, openMs, closedMs }) => {
    const limits = { idleTimeoutMs, requestTimeoutMs: 400 };
    await using greenhouse = await startOnNode({ waterBed: () => ({}) }, { limits }, { maxConnectionAgeMs: 100 });
    using connection = await openHttp1(greenhouse.address);
    connection.write(wholeCall);
    // The response ends the first wait, and the connection retires after it.
    expect(fieldValue((await connection.readResponse()).header, "connection")).toBe("keep-alive");
    await advance(openMs);
    // Node's own keep-alive timeout, which the fake clock does not stop, may close the connection later.
    expect(acceptedSocket().writableEnded).toBe(false);
    await advance(closedMs);
    expect(acceptedSocket().writableEnded).toBe(true);
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
  ])("gets Keep-Alive: $value with idleTimeoutMs $idleTimeoutMs on node:http", async ({ idleTimeoutMs, value }) => {
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

describe("an invalid chunk on node:http", () => {
  test("gets 400, and the handler does not run", async () => {
    let calls = 0;
    await using greenhouse = await startOnNode({ waterBed: () => ({ bed: BigInt((calls += 1)) }) });
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${head}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`);
    await expect.poll(() => greenhouse.gateway.load.requests.http1).toBe(1);
    connection.write("g\r\n");
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
    expect(await connection.atEnd()).toBe(true);
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 400 });
    expect(calls).toBe(0);
  });

  test("closes the connection without a second response", async () => {
    await using greenhouse = await startOnNode({});
    using connection = await openHttp1(greenhouse.address);
    connection.write(`${head.replace("/beds", "/nothing")}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`);
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 404 });
    connection.write("g\r\n");
    expect(await connection.atEnd()).toBe(true);
  });
});
