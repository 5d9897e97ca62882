import { expect, test } from "vitest";
import { runProgram } from "../../../../packages/testing/src/process/child-program.ts";

/**
 * How often a warm call changes the module. Each protocol's limit is today's number, so that no change adds one
 * unnoticed.
 */
const calls = [
  { format: "rest", entriesMax: 33, parser: "http-engine/http1/", reader: "protobuf/messages/json/" },
  { format: "grpc", entriesMax: 39, parser: "http-engine/http2/", reader: "protobuf/messages/binary/" },
];

const args = ["--import", "./tools/call-path/record-modules.ts", "tools/call-path/main.ts"];
const recording = runProgram(process.execPath, args);

test.each(calls)("a warm $format call enters at most $entriesMax modules", async ({ format, entriesMax, ...own }) => {
  const { stdout, stderr } = await recording;
  expect(stderr).toBe("");
  const paths = new Map(stdout.split("\n").map((line) => [line.split(" ")[0], line.split(" ").slice(1)]));
  const path = paths.get(format) ?? [];
  // A missing module would mean that the recording is incomplete.
  const expected = ["http/exchange/", "http/listen/", "serve/", "protocols/", "handler"];
  expect(path).toEqual(expect.arrayContaining([...expected, own.parser, own.reader]));
  expect(path.length, path.join(" → ")).toBeLessThanOrEqual(entriesMax);
});
