import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { file_greenhouse_v1_greenhouse } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { reasonOf } from "../../../../../testing/src/gateway/call-end.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { startGreenhouse } from "../../../../../testing/src/gateway/greenhouse.ts";
import { call, createGreenhouse, never, openStdio } from "../../../../../testing/src/gateway/stdio-peer.ts";
import { projectFolder } from "../../../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { serveStdio } from "../../../../src/command/mcp-stdio.ts";

// How a server on standard input and output stops.

/** Milliseconds that no test waits for. */
const hourMs = 3_600_000;

/** How many calls run concurrently. Further calls are queued. */
const runningMax = 32;

describe("MCP on standard input", () => {
  test.each([
    { name: "when the input ends", end: "input" },
    { name: "when a stop is requested", end: "stop" },
  ] as const)("$name, running and queued calls get their results", async ({ end }) => {
    const released = Promise.withResolvers<void>();
    const requested = Promise.withResolvers<void>();
    await using client = openStdio(createGreenhouse(undefined, released.promise), {
      stop: { requested: requested.promise, timeoutMs: hourMs },
    });
    const ids = Array.from({ length: runningMax + 2 }, (_, at) => at + 1);
    for (const id of ids) client.send(call(id, "GetReading", { sensor: "slow" }));
    client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: runningMax + 1 } });
    await expect.poll(() => client.input.readableLength).toBe(0);
    if (end === "input") client.input.end();
    else requested.resolve();
    await once(client.input, "close");
    released.resolve();
    const results: unknown[] = [];
    while (results.length < ids.length - 1) results.push(await client.read());
    await within(client.done, "the server");
    expect(results.map((result) => Object.assign({ id: 0 }, result).id).toSorted((a, b) => a - b)).toEqual(
      ids.filter((id) => id !== runningMax + 1),
    );
    for (const each of results) expect(each).toMatchObject({ result: { structuredContent: { sensor: "slow" } } });
  });

  test("a last line without line feed is read at the input's end", async () => {
    const client = openStdio(createGreenhouse(), { stop: { requested: never, timeoutMs: hourMs } });
    client.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    client.input.end(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" }));
    for (const id of [1, 2]) expect(await client.read()).toMatchObject({ id, result: {} });
    await within(client.done, "the server");
  });

  test("an incomplete line is not read when a stop is requested", async () => {
    const requested = Promise.withResolvers<void>();
    const greenhouse = createGreenhouse();
    const client = openStdio(greenhouse, { stop: { requested: requested.promise, timeoutMs: hourMs } });
    client.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    client.input.write(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" }));
    expect(await client.read()).toMatchObject({ id: 1 });
    requested.resolve();
    await within(client.done, "the server");
    expect(client.output.readableLength).toBe(0);
  });

  test.each([
    { name: "when the input ends", end: "input" },
    { name: "when a stop is requested", end: "stop" },
  ] as const)("$name, running and queued calls are cancelled after the timeout", async ({ end }) => {
    const requested = Promise.withResolvers<void>();
    let admitted = 0;
    const greenhouse = createGreenhouse(() => void admitted++);
    const client = openStdio(greenhouse, { stop: { requested: requested.promise, timeoutMs: 50 } });
    const ids = Array.from({ length: runningMax + 1 }, (_, at) => at);
    for (const id of ids) client.send(call(id, "WatchReadings", { sensor: "endless", count: 1 }));
    const { signal } = await within(greenhouse.begun, "the handler");
    if (end === "input") client.input.end();
    else requested.resolve();
    await within(client.done, "the server");
    expect(ConnectError.from(await reasonOf(signal)).code).toBe(Code.Canceled);
    // The queued call has not started.
    expect(admitted).toBe(runningMax);
  });

  test("calls are cancelled immediately when the client closes the output", async () => {
    const greenhouse = createGreenhouse();
    const client = openStdio(greenhouse, { stop: { requested: never, timeoutMs: hourMs } });
    client.send(call(1, "WatchReadings", { sensor: "endless", count: 1 }));
    const { signal } = await within(greenhouse.begun, "the handler");
    client.output.destroy(new Error("EPIPE"));
    await within(client.done, "the server");
    expect(signal.aborted).toBe(true);
  });

  test("calls to a slow client share one drain listener", async () => {
    const client = openStdio(createGreenhouse(), { reads: false });
    for (let id = 1; id <= runningMax; id++) client.send(call(id, "GetReading", { sensor: "x".repeat(50_000) }));
    await expect.poll(() => client.output.writableLength).toBeGreaterThan((runningMax - 2) * 50_000);
    expect(client.output.listenerCount("drain")).toBeLessThan(3);
    client.input.end();
    await within(client.done, "the server");
  });

  test("the server stops only after its last response is written", async () => {
    const written = Promise.withResolvers<() => void>();
    const input = new PassThrough();
    const output = new Writable({
      write: (bytes: Buffer, _encoding, done) => (bytes.byteLength > 0 ? written.resolve(done) : done()),
    });
    const client = { input, output, token: undefined, err: () => undefined };
    let isDone = false;
    const stop = { requested: never, timeoutMs: hourMs };
    const done = serveStdio(createGreenhouse().fetch, client, stop).then(() => (isDone = true));
    input.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }));
    const completeWrite = await within(written.promise, "the response");
    await nextTurn();
    expect(isDone).toBe(false);
    completeWrite();
    await within(done, "the server");
  });

  test("results that the client does not read are dropped after the timeout", async () => {
    const client = openStdio(createGreenhouse(), { stop: { requested: never, timeoutMs: 20 }, reads: false });
    const sensor = "x".repeat(1024 * 1024);
    for (const id of [1, 2]) client.send(call(id, "GetReading", { sensor }));
    client.input.end();
    await within(client.done, "the server");
    expect(client.output.writableLength + client.output.readableLength).toBeGreaterThan(1024 * 1024);
  });

  test("the server stops if the client does not read its responses", async () => {
    const errors: string[] = [];
    const options = { stop: { requested: never, timeoutMs: 20 }, reads: false, errors };
    const client = openStdio(createGreenhouse(), options);
    const sensor = "x".repeat(6 * 1024 * 1024);
    // The calls fill the output, and do not end.
    for (let id = 1; id <= runningMax; id++) client.send(call(id, "GetReading", { sensor: "x".repeat(100_000) }));
    for (const id of [33, 34, 35, 36, 37]) client.send(call(id, "GetReading", { sensor }));
    await within(client.done, "the server");
    expect(errors).toEqual(["the MCP client does not read its responses"]);
  });
});

function start(flags: readonly string[], upstream = "http://127.0.0.1:1"): ChildProcess {
  const folder = createTempFolder();
  writeFileSync(folder.file("set.binpb"), descriptorSetOf(file_greenhouse_v1_greenhouse));
  const program = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const set = ["--upstream", upstream, "--descriptors", folder.file("set.binpb"), "--mcp", "*", "--mcp-stdio"];
  const running = spawn(process.execPath, [program, ...set, ...flags], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => {
    running.kill("SIGKILL");
    folder[Symbol.dispose]();
  });
  return running;
}

describe("the command with --mcp-stdio", () => {
  const ping = JSON.stringify({ jsonrpc: "2.0", id: "p".repeat(200), method: "ping" });

  test("exits without a delay when its input is empty", async () => {
    const running = start(["--drain-delay-ms", String(hourMs)]);
    running.stdin?.end();
    expect(await within(once(running, "exit"), "the exit")).toEqual([0, null]);
  });

  test.each(["SIGTERM", "SIGINT"] as const)("exits with code 0 on %s while its input is open", async (signal) => {
    const running = start(["--drain-delay-ms", String(hourMs)]);
    running.stdin?.write(`${ping}\n`);
    await within(once(running.stdout ?? running, "data"), "the response");
    running.kill(signal);
    expect(await within(once(running, "exit"), "the exit")).toEqual([0, null]);
  });

  test("exits with 0 after its input ended, even with unread output", async () => {
    const running = start(["--drain-timeout-ms", "100"]);
    running.stdin?.end(`${ping}\n`.repeat(3_000));
    expect(await within(once(running, "exit"), "the exit")).toEqual([0, null]);
  });

  test("writes the results of running calls after its input ended", async () => {
    const called = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    await using greenhouse = await startGreenhouse({
      getReading: async ({ sensor }) => {
        called.resolve();
        await released.promise;
        return { sensor };
      },
    });
    const { address, port } = greenhouse.address;
    const running = start([], `http://${address}:${port}`);
    const output = text(running.stdout ?? process.stdin);
    const calls = [call(1, "GetReading", { sensor: "palm" }), call(2, "GetReading", { sensor: "door" })];
    running.stdin?.end(calls.map((each) => JSON.stringify(each)).join("\n"));
    await within(called.promise, "the call");
    released.resolve();
    expect(await within(once(running, "exit"), "the exit")).toEqual([0, null]);
    expect(await output).toContain('"sensor":"palm"');
    expect(await output).toContain('"sensor":"door"');
  });
});
