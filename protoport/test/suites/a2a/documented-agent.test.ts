import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startExample } from "../../../testing/src/process/example-server.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";

// The commands in protoport/examples/a2a/README.md, on a free port.

test("the documented commands print the agent card and a streamed task", async () => {
  const [start, calls] = blocksRunBy("protoport/test/suites/a2a/documented-agent.test.ts").map(({ text }) => text);
  expect(start).toBe("$ npx node protoport/examples/a2a/main.ts 8080\nhttp://127.0.0.1:8080");
  await using agent = await startExample("a2a/main.ts");
  const commands = calls?.replaceAll("8080", String(agent.address.port)) ?? "";
  const { stdout } = await promisify(execFile)("sh", ["-e", "-c", commands]);
  expect(stdout).toContain('"name":"Gardener"');
  expect(stdout).toContain("watered with 3 liters");
});
