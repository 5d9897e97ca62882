import { expect, test } from "vitest";
import { runProgram } from "@protoport/testing/process";

const everywhere = ["", "engine/", "http/exchange/", "protocols/", "serve/"]
  .map((name) => `gateway/${name}`)
  .concat("handler");
const binary = ["gateway/protobuf/messages/binary/", "gateway/protobuf/"];
const json = "gateway/protobuf/messages/json/";
const rules = "gateway/protocols/rest/rules/";
const awaited = "gateway/http/node/";
const proxy = ["proxy/client/", "proxy/forward/", "proxy/upstreams/"];

/** How often a warm call changes the module, and the modules that it enters. Each limit is the current number. */
const calls = [
  { format: "rest", maxEntries: 27, own: [json, rules] },
  { format: "grpc", maxEntries: 31, own: [awaited, ...binary] },
  { format: "proxied-rest", maxEntries: 108, own: [json, rules, ...binary, ...proxy] },
  { format: "proxied-grpc", maxEntries: 97, own: [awaited, ...proxy] },
];

const args = ["--import", "./tools/call-path/record-modules.ts", "tools/call-path/main.ts"];
const recording = runProgram(process.execPath, args);

// The recording takes 10 s, or a minute on a busy machine.
test.each(calls)(
  "a warm $format call changes the module at most $maxEntries times",
  { timeout: 200_000 },
  async ({ format, maxEntries, own }) => {
    const { stdout, stderr } = await recording;
    expect(stderr).toBe("");
    const paths = new Map(stdout.split("\n").map((line) => [line.split(" ")[0], line.split(" ").slice(1)]));
    const path = paths.get(format) ?? [];
    // A missing module would mean that the recording is incomplete, and a merged one would hide changes.
    expect([...new Set(path)].toSorted()).toEqual([...everywhere, ...own].toSorted());
    expect(path.length, path.join(" → ")).toBeLessThanOrEqual(maxEntries);
  },
);
