import { EventEmitter, once } from "node:events";
import { describe, expect, test } from "vitest";
import { within } from "../../support/deadline.ts";
import { type Field, fieldValue, type HttpRequest } from "../../support/exchange.ts";
import { startGreenhouse, waterBedProcedure } from "../../support/greenhouse.ts";
import { openHttp1 } from "../../support/http1-connection.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";

function water(header: readonly Field[], body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json, ...header], body: Buffer.from(body) };
}

describe("a client that takes nothing of what it is answered", () => {
  // More than the kernel takes for a client that does not read.
  const bigText = "plants".repeat(3_000_000);

  test.each([
    { name: "whole", target: waterBedProcedure, type: "application/json", body: "{}" },
    {
      name: "in a stream of messages",
      target: "/greenhouse.v1.GreenhouseService/WatchReadings",
      type: "application/connect+json",
      body: "\0\0\0\0\x02{}",
    },
  ])("$name, is cut off", async ({ target, type, body }) => {
    const closed = Promise.withResolvers<unknown>();
    await using greenhouse = await startGreenhouse(
      {
        waterBed: () => ({ note: bigText }),
        async *watchReadings() {
          for (;;) yield { sensor: bigText.slice(0, 100_000) };
        },
      },
      {
        limits: { idleTimeoutMs: 50 },
        admit: ({ connection }) => {
          if (connection instanceof EventEmitter) closed.resolve(once(connection, "close"));
        },
      },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.socket.pause();
    connection.write(
      `POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: ${String(body.length)}\r\n\r\n${body}`,
    );
    await within(closed.promise, "the connection to be closed");
    await greenhouse.answered(1);
  });

  test("any more, once it has taken one of two, is cut off", async () => {
    const closed = Promise.withResolvers<unknown>();
    await using greenhouse = await startGreenhouse(
      { waterBed: () => ({ note: bigText }) },
      {
        limits: { idleTimeoutMs: 50 },
        admit: ({ connection }) => {
          if (connection instanceof EventEmitter) closed.resolve(once(connection, "close"));
        },
      },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    connection.request(water([], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    connection.socket.pause();
    await within(closed.promise, "the connection to be closed");
  });

  test("for a while, and then all of it, is not cut off in the quiet stream that follows", async () => {
    const timedOut = Promise.withResolvers<unknown>();
    await using greenhouse = await startGreenhouse(
      {
        waterBed: () => ({ note: bigText }),
        async *watchReadings() {
          await timedOut.promise;
          yield { sensor: "quiet" };
        },
      },
      {
        limits: { idleTimeoutMs: 1000 },
        admit: ({ connection }) => {
          if (connection instanceof EventEmitter) timedOut.resolve(once(connection, "timeout"));
        },
      },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    connection.request({
      httpMethod: "POST",
      path: "/greenhouse.v1.GreenhouseService/WatchReadings",
      header: [["content-type", "application/connect+json"]],
      body: Buffer.from("\0\0\0\0\u0002{}"),
    });
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    expect(String((await connection.readAnswer()).body)).toContain("quiet");
  });

  test("and goes on with its request, is cut off as quietly as others", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    const closed = Promise.withResolvers<unknown>();
    await using greenhouse = await startGreenhouse(
      {},
      {
        endpoints: [{ path: "/page", open: false, answer: () => ({ httpStatus: 200, body: bigText }) }],
        limits: { idleTimeoutMs: 50 },
        admit: ({ connection }) => {
          if (connection instanceof EventEmitter) closed.resolve(once(connection, "close"));
        },
      },
    );
    process.on("warning", onWarning);
    using connection = await openHttp1(greenhouse.address);
    connection.socket.pause();
    connection.write("GET /page HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
    connection.write(chunk.repeat(2048));
    await within(closed.promise, "the connection to be closed");
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("a client that sends ahead", () => {
  test("more than it may has the rest left unread until it is answered", async () => {
    const requests = 100;
    const unread = Promise.withResolvers<unknown>();
    let running = 0;
    let mostRunning = 0;
    await using greenhouse = await startGreenhouse(
      {
        waterBed: async () => {
          mostRunning = Math.max(mostRunning, ++running);
          await unread.promise;
          running--;
          return {};
        },
      },
      {
        limits: { concurrentStreams: 8 },
        admit: ({ connection }) => {
          if (connection instanceof EventEmitter) unread.resolve(once(connection, "pause"));
        },
      },
    );
    using connection = await openHttp1(greenhouse.address);
    // So long that only a few are read at once.
    const body = JSON.stringify({ note: "n".repeat(20_000) });
    for (let i = 0; i < requests; i++) connection.request(water([], body));
    for (let i = 0; i < requests; i++) expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
    expect(mostRunning).toBeLessThan(20);
  });

  test("is given what is ready also when what it sends behind it is not HTTP", async () => {
    const first = Promise.withResolvers<{ note: string }>();
    await using greenhouse = await startGreenhouse(
      { waterBed: () => first.promise },
      { endpoints: [{ path: "/page", open: true, answer: () => ({ httpStatus: 200, body: "second" }) }] },
    );
    using connection = await openHttp1(greenhouse.address);
    connection.request(water([], "{}"));
    connection.write("GET /page HTTP/1.1\r\nhost: x\r\n\r\nplants\r\n\r\n");
    await greenhouse.answered(1);
    first.resolve({ note: "first" });
    expect(String((await connection.readAnswer()).body)).toContain("first");
    expect(String((await connection.readAnswer()).body)).toContain("second");
    expect(await connection.atEnd()).toBe(true);
  });

  test("gets its answers in order, whatever order the calls end in", async () => {
    const first = Promise.withResolvers<{ note: string }>();
    const calls = new EventEmitter();
    await using greenhouse = await startGreenhouse({
      waterBed: ({ bed }) => {
        calls.emit(String(bed));
        return bed === 1n ? first.promise : { note: "second" };
      },
    });
    using connection = await openHttp1(greenhouse.address);
    const second = once(calls, "2");
    const requests = [1, 2].map(
      (bed) =>
        `POST /beds/${String(bed)}:water HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    );
    connection.write(requests.join(""));
    await within(second, "the second call");
    first.resolve({ note: "first" });
    expect(String((await connection.readAnswer()).body)).toContain("first");
    expect(String((await connection.readAnswer()).body)).toContain("second");
  });
});

describe("a body that nobody wants", () => {
  test.each([
    { name: "whose answer has a body", target: "/nothing", header: [], httpStatus: 404 },
    { name: "whose answer has none", target: waterBedProcedure, header: ["content-type: text/plain"], httpStatus: 415 },
  ])("$name, does not hold the answer up, nor does what is wrong with it", async ({ target, header, httpStatus }) => {
    await using greenhouse = await startGreenhouse({});
    using connection = await openHttp1(greenhouse.address);
    const head = [`POST ${target} HTTP/1.1`, "host: x", "transfer-encoding: chunked", ...header, "", ""].join("\r\n");
    connection.write(`${head}no length\r\n`);
    const answer = await connection.readAnswer();
    expect(answer.httpStatus).toBe(httpStatus);
    expect(fieldValue(answer.header, "connection")).toBe("close");
    expect(await connection.atEnd()).toBe(true);
  });

  test("is taken in when it is small, and the connection is kept", async () => {
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) });
    using connection = await openHttp1(greenhouse.address);
    connection.request({ httpMethod: "POST", path: "/nothing", header: [], body: Buffer.alloc(100_000) });
    const answer = await connection.readAnswer();
    expect(answer.httpStatus).toBe(404);
    expect(fieldValue(answer.header, "connection")).not.toBe("close");
    connection.request(water([], "{}"));
    expect(await connection.readAnswer()).toMatchObject({ httpStatus: 200 });
  });
});
