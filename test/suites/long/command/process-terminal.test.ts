import { expect, test } from "vitest";
import { createTempFolder, startNode } from "@protoport/testing/process";

test("terminal writes to a pipe wait without buffering when the reader is slow", async () => {
  using folder = createTempFolder();
  const module = new URL("../../../../src/command/process-terminal.ts", import.meta.url).href;
  const program = `
    const { processTerminal } = await import(${JSON.stringify(module)});
    const terminal = processTerminal(() => undefined);
    terminal.err("progress " + terminal.progress);
    let buffered = 0;
    for (let n = 0; n < 64; n++) {
      await terminal.write("x".repeat(2 ** 20));
      buffered = Math.max(buffered, process.stdout.writableLength);
    }
    terminal.err("buffered " + buffered);`;
  await using command = startNode(["--input-type=module", "--eval", program], folder.path);
  command.process.stdout.pause();
  await command.find(/progress/);
  command.process.stdout.resume();
  expect(await command.end()).toBe(0);
  expect(command.stderr()).toBe("progress undefined\nbuffered 0\n");
  expect(command.stdout()).toHaveLength(64 * 2 ** 20);
});

test("a command exits with 0 when its reader closes the pipe", async () => {
  using folder = createTempFolder();
  const module = new URL("../../../../src/command/process-terminal.ts", import.meta.url).href;
  const program = `
    const { processTerminal } = await import(${JSON.stringify(module)});
    const terminal = processTerminal(() => undefined);
    for (;;) await terminal.write("x".repeat(2 ** 20));`;
  await using command = startNode(["--input-type=module", "--eval", program], folder.path);
  command.process.stdout.once("data", () => command.process.stdout.destroy());
  expect(await command.end()).toBe(0);
  expect(command.stderr()).toBe("");
});
