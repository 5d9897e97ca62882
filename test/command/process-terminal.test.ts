import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import type { PlantTerminal } from "../../src/command/command.ts";
import { processTerminal } from "../../src/command/process-terminal.ts";

afterEach(() => vi.unstubAllGlobals());

test.for([
  ["EPIPE on standard output, a command exits with 0", "EPIPE", "stdout", false, [[0]]],
  ["ENOSPC on standard output, a command exits with 1", "ENOSPC", "stdout", false, [[1]]],
  ["EPIPE on standard output, a server continues", "EPIPE", "stdout", true, []],
  ["EPIPE on standard error, a command continues", "EPIPE", "stderr", false, []],
] as const)("after %s", ([, code, stream, ignoresOutputErrors, want]) => {
  const [streams, exit] = [{ stdout: new EventEmitter(), stderr: new EventEmitter() }, vi.fn()];
  vi.stubGlobal("process", { ...process, ...streams, exit });
  processTerminal(vi.fn(), ignoresOutputErrors);
  streams[stream].emit("error", Object.assign(new Error("write"), { code }));
  expect(exit.mock.calls).toEqual(want);
});

test("a write waits until standard output has drained", async () => {
  const stdout = new PassThrough({ highWaterMark: 1 });
  vi.stubGlobal("process", { ...process, stderr: new PassThrough(), stdout });
  const ended: string[] = [];
  const writing = processTerminal(vi.fn()).write("12");
  const written = writing.then(() => ended.push("write"));
  await new Promise(setImmediate);
  ended.push("turn");
  stdout.resume();
  await written;
  expect(ended).toEqual(["turn", "write"]);
});

test.each([
  { name: "standard error", stderr: { isTTY: true }, stdout: {}, want: true },
  { name: "standard output", stderr: {}, stdout: { isTTY: true }, want: false },
])("with $name as a terminal, the existence of a progress line is $want", ({ stderr, stdout, want }) => {
  const on = vi.fn();
  vi.stubGlobal("process", { ...process, stderr: { ...stderr, on }, stdout: { ...stdout, on } });
  expect(processTerminal(vi.fn()).progress !== undefined).toBe(want);
});

test.for([
  ["before the server listens", 1, 0],
  ["once the server listens", 0, 1],
  ["twice before the server listens, and then again", 2, 1],
] as const)("serve reloads when SIGHUP arrives %s", async ([, early, late]) => {
  using on = vi.spyOn(process, "on").mockReturnValue(process);
  const started = Promise.withResolvers<PlantTerminal>();
  // Never ends, so that the command does not end this process.
  const runCommandLine = async (_words: unknown, terminal: PlantTerminal): Promise<void> => {
    started.resolve(terminal);
    await new Promise(() => {});
  };
  vi.doMock("../../src/command/run-command-line.ts", () => ({ runCommandLine }));
  vi.stubGlobal("process", Object.assign(Object.create(process), { argv: ["node", "main.ts", "serve"], env: {} }));
  vi.resetModules();
  await import("../../src/command/main.ts");
  const hangUp = on.mock.calls.find(([name]) => name === "SIGHUP")?.[1];
  for (let i = 0; i < early; i++) hangUp?.();
  const reload = vi.fn();
  (await started.promise).onHangup(reload);
  for (let i = 0; i < late; i++) hangUp?.();
  expect(reload).toHaveBeenCalledTimes(Math.min(early, 1) + late);
  vi.doUnmock("../../src/command/run-command-line.ts");
});
