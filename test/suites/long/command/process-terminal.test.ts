import { expect, test } from "vitest";
import { createTempFolder, startNode } from "@protoport/testing/process";

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
