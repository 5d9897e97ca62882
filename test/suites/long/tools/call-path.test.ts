import { expect, test } from "vitest";
import { runProgram } from "../../../../protoport/testing/src/process/child-program.ts";

const ofProxy = ["proxy/forward/", "proxy/client/", "proxy/upstreams/", "gateway/engine/http2-client/"];

/**
 * How often a warm call changes the module. Each protocol's limit is the current number, so that no change adds one
 * unnoticed.
 */
const calls = [
  { format: "rest", entriesMax: 33, own: ["gateway/engine/http1/", "gateway/protobuf/messages/json/"] },
  { format: "grpc", entriesMax: 37, own: ["gateway/engine/http2/", "gateway/protobuf/messages/binary/"] },
  {
    format: "proxied-rest",
    entriesMax: 139,
    own: ["gateway/engine/http1/", "gateway/protobuf/messages/binary/", ...ofProxy],
  },
  { format: "proxied-grpc", entriesMax: 125, own: ["gateway/engine/http2/", ...ofProxy] },
];

const args = ["--import", "./tools/call-path/record-modules.ts", "tools/call-path/main.ts"];
const recording = runProgram(process.execPath, args);

test.each(calls)(
  "a warm $format call changes the module at most $entriesMax times",
  async ({ format, entriesMax, own }) => {
    const { stdout, stderr } = await recording;
    expect(stderr).toBe("");
    const paths = new Map(stdout.split("\n").map((line) => [line.split(" ")[0], line.split(" ").slice(1)]));
    const path = paths.get(format) ?? [];
    // A missing module would mean that the recording is incomplete.
    const expected = ["http/exchange/", "engine/", "serve/", "protocols/"]
      .map((name) => `gateway/${name}`)
      .concat("handler");
    expect(path).toEqual(expect.arrayContaining([...expected, ...own]));
    expect(path.length, path.join(" → ")).toBeLessThanOrEqual(entriesMax);
  },
);
