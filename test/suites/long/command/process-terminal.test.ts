import { expect, test } from "vitest";
import { createTempFolder, startNode } from "@protoport/testing/process";
import { startCommandLine } from "../../../support/process/command-line.ts";

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

test("a command whose standard error has no reader exits with its own code", async () => {
  using folder = createTempFolder();
  await using command = startCommandLine(["migrate", "--database-url", "sqlite:plants.db"], folder.path);
  command.process.stderr.destroy();
  expect(await command.end()).toBe(0);
});

test("serve --demo continues without a reader of its output", async () => {
  using folder = createTempFolder();
  await using command = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0", LOG_LEVEL: "info" });
  command.process.stdout.destroy();
  await expect.poll(() => command.stderr()).toContain("listening");
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  expect(command.stderr()).toContain("stopped");
});
