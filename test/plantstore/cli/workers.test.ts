import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../support/plants/postgres-server.ts";
import { type CommandLine, startCommandLine } from "../../support/process/command-line.ts";
import { runCommand } from "../../support/process/run-command.ts";
import { createTempFolder, type TempFolder } from "../../support/process/temp-folder.ts";

// What they do when one of them is killed is in test/crash/workers.test.ts.

function timesSaid({ stderr }: CommandLine, message: string): number {
  return stderr().split(`"msg":"${message}"`).length - 1;
}

const listening = (times: number): RegExp => new RegExp(`(?:"msg":"listening"(?:.|\\n)*){${times}}`);
const bothListen = listening(2);

describe("two workers", () => {
  let folder: TempFolder;
  let postgres: PostgresServer;
  let server: CommandLine;
  let database: string;
  beforeAll(async () => {
    folder = createTempFolder();
    postgres = await startPostgres();
    database = await postgres.createSchema();
    await runCommand(["migrate"], { DATABASE_URL: database });
    server = serve();
    // Only then are there handlers of signals.
    await server.find(bothListen);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await postgres[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const serve = (): CommandLine =>
    startCommandLine(["serve", "--workers", "2"], folder.path, {
      PORT: "0",
      DATABASE_URL: database,
      PLANTSTORE_TOKENS: "token-of-the-workers-test",
      PLANTSTORE_ADMIN_ADDRESS: "0",
      PLANTSTORE_DRAIN_DELAY_MS: "0",
    });

  test("leave the address for metrics to the process that started them", async () => {
    const [, port = ""] = await server.find(/"port":(\d+),"msg":"metrics are served"/);
    // What answers for its metrics takes every other order, too.
    const scrape = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await expect.poll(scrape).toMatch(/^plantstore_workers 2$/m);
    expect(timesSaid(server, "metrics are served")).toBe(1);
  });

  test("read their credentials again when that process gets a SIGHUP", async () => {
    server.process.kill("SIGHUP");
    await expect.poll(() => timesSaid(server, "reloading")).toBe(2);
  });

  test("drain and end when that process is gone", async () => {
    server.process.kill("SIGKILL");
    // Its output is at an end once none of the workers, which share it, is there any more.
    expect(await server.end()).toBe(null);
    expect(timesSaid(server, "stopped")).toBe(2);
  });

  test("drain and end at its signal, and it with them", async () => {
    await using other = serve();
    await other.find(bothListen);
    other.process.kill("SIGTERM");
    expect(await other.end()).toBe(0);
    expect(timesSaid(other, "stopped")).toBe(2);
  });

  test("end when it is told to stop while it replaces them, and none is started after that", async () => {
    await using other = serve();
    await other.find(bothListen);
    other.process.kill("SIGUSR2");
    await other.find(listening(3));
    other.process.kill("SIGTERM");
    expect(await other.end()).toBe(0);
    expect(timesSaid(other, "stopped")).toBe(timesSaid(other, "listening"));
    expect(other.stderr()).not.toContain("ERR_WORKER_ENDED");
  });
});
