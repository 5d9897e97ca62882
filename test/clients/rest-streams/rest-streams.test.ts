import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, test } from "vitest";
import type { Reading } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../../src/gateway/index.ts";
import { within } from "../../support/deadline.ts";
import { startGreenhouse } from "../../support/gateway/greenhouse.ts";
import { buildStep } from "../../support/process/build-step.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";
import { hasProgram } from "../../support/process/tools-folder.ts";

// Streams over REST as clients read and send them that know nothing of RPCs: each message when it is sent.

const service = "greenhouse.v1.GreenhouseService";
const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
  { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/readings" } },
  { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
];

type Command = (what: "watch" | "record", url: string) => readonly string[];

const curl: Command = (what, url) => {
  const sending = ["-X", "POST", "-T", "-", "-H", "content-type: application/x-ndjson"];
  return ["curl", "-sSN", "--compressed", ...(what === "watch" ? [] : sending), url];
};
const go = createTempFolder();

const clients: readonly { readonly name: string; readonly program: string; readonly command: Command }[] = [
  { name: "curl over HTTP/1.1", program: "curl", command: curl },
  {
    name: "curl over HTTP/2",
    program: "curl",
    command: (what, url) => [...curl(what, url), "--http2-prior-knowledge"],
  },
  {
    name: "fetch of Node",
    program: "node",
    command: (what, url) => [process.execPath, join(import.meta.dirname, "main.ts"), what, url],
  },
  { name: "net/http of Go", program: "go", command: (what, url) => [go.file("streams"), what, url] },
  {
    name: "http.client of Python",
    program: "python3",
    command: (what, url) => ["python3", join(import.meta.dirname, "main.py"), what, url],
  },
];

beforeAll(async () => {
  if (!hasProgram("go")) return;
  await buildStep("go", ["build", "-o", go.file("streams"), join(import.meta.dirname, "main.go")]);
});

function start([program = "", ...args]: readonly string[]): ChildProcess & AsyncIterable<string> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return Object.assign(child, { [Symbol.asyncIterator]: () => lines });
}

describe.each(clients.filter(({ program }) => hasProgram(program)))("$name", ({ command }) => {
  test("reads each message when it was sent", async () => {
    const next = new EventEmitter();
    await using greenhouse = await startGreenhouse(
      {
        async *watchReadings() {
          for (let at = 0; at < 3; at += 1) {
            yield { sensor: `s${at}` };
            await once(next, "go");
          }
        },
      },
      { rest: { rules } },
    );
    const client = start(command("watch", `http://127.0.0.1:${greenhouse.address.port}/readings`));
    const lines = client[Symbol.asyncIterator]();
    for (let at = 0; at < 3; at += 1) {
      expect(await within(lines.next(), "a message")).toEqual({ done: false, value: `{"sensor":"s${at}"}` });
      next.emit("go");
    }
    expect(await within(lines.next(), "the end")).toMatchObject({ done: true });
  });

  test("sends messages that are handled as they come", async () => {
    const read = new EventEmitter();
    await using greenhouse = await startGreenhouse(
      {
        recordReadings: async (readings: AsyncIterable<Reading>) => {
          let count = 0;
          for await (const { sensor } of readings) {
            count += 1;
            read.emit("reading", sensor);
          }
          return { count };
        },
      },
      { rest: { rules } },
    );
    const client = start(command("record", `http://127.0.0.1:${greenhouse.address.port}/readings`));
    for (const sensor of ["a", "b", "c"]) {
      const reading = once(read, "reading");
      client.stdin?.write(`{"sensor":"${sensor}"}\n`);
      expect(await within(reading, "a reading")).toEqual([sensor]);
    }
    client.stdin?.end();
    const lines = client[Symbol.asyncIterator]();
    expect(await within(lines.next(), "the answer")).toEqual({ done: false, value: '{"count":3}' });
  });
});
