import { expect, test } from "vitest";
import { runProgram } from "../../packages/testing/src/process/child-program.ts";

/** Keeps the code easy to follow: docs/explanation/architecture.md, "How a request is served", has eight steps. */
const entriesMax = 16;

const args = ["--import", "./tools/call-path/record-modules.ts", "tools/call-path/main.ts"];
const recording = runProgram(process.execPath, args);

test.each(["rest", "grpc"])("a warm call over %s enters modules at most 16 times", async (format) => {
  const { stdout, stderr } = await recording;
  expect(stderr).toBe("");
  const paths = new Map(stdout.split("\n").map((line) => [line.split(" ")[0], line.split(" ").slice(1)]));
  const path = paths.get(format) ?? [];
  // A missing module would mean that the recording is incomplete.
  expect(new Set(path)).toEqual(new Set(["engine", "serve", "protocol", "messages", "handler"]));
  expect(path.length, path.join(" → ")).toBeLessThanOrEqual(entriesMax);
});
