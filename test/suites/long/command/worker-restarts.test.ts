import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
// oxfmt-ignore
import { type CommandLine, createTempFolder, projectFolder, startNode, type TempFolder
} from "@protoport/testing/process";

const worker = `
  import { createServer } from "node:net";
  process.on("message", (order) => { if (order === "drain") process.exit(); });
  createServer().listen(0, "127.0.0.1", () => console.log("worker " + process.pid));`;

/** Starts a supervisor with two workers, which run the Node.js at the path `node`. */
function supervise(folder: TempFolder, node: string): CommandLine {
  const program = folder.file("worker.mjs");
  writeFileSync(program, worker);
  return startNode([join(projectFolder, "test/support/process/supervise.ts"), program, node], folder.path);
}

test("a supervisor retries until the system can start a worker's process", async () => {
  using folder = createTempFolder();
  const node = folder.file("node");
  symlinkSync(process.execPath, node);
  await using supervisor = supervise(folder, node);
  const [, pid] = await supervisor.find(/worker (\d+)\n(?:.*\n)*worker \d+\n/);
  rmSync(node);
  process.kill(Number(pid), "SIGKILL");
  await supervisor.find(/"ERR_WORKER_EXITED","cause":"Error: spawn .* ENOENT","msg":"a worker could not be started/);
  const [, port] = await supervisor.find(/"port":(\d+),"msg":"serving metrics"/);
  const problems: object = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/problems`)).text());
  expect(Object.keys(problems).toSorted()).toEqual(["process of worker 1", "process of worker 2"]);
  symlinkSync(process.execPath, node);
  await supervisor.find(/(?:worker \d+\n(?:.*\n)*){3}/);
  supervisor.process.kill("SIGTERM");
  expect(await supervisor.end()).toBe(0);
});

test("a supervisor exits if the system cannot start the first worker's process", async () => {
  using folder = createTempFolder();
  await using supervisor = supervise(folder, folder.file("missing-node"));
  expect(await supervisor.end()).toBe(1);
  expect(supervisor.stderr()).toMatch(/Error: spawn .*missing-node ENOENT/);
  expect(supervisor.stderr()).not.toContain("Unhandled 'error' event");
});
