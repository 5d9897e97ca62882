import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createTempFolder } from "@protoport/testing/process";
import { createConformanceServer } from "./conformance-server.ts";

// MCP's own conformance suite. A scenario that fails without being listed in expected-failures-*.yaml, or passes although it
// is listed, fails this test.

const program = join(import.meta.dirname, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

test.each([
  {
    revision: "2026-07-28",
    passed: ["tools-list", "tools-call-error", "dns-rebinding-protection", "http-header-validation"],
  },
  { revision: "2025-11-25", passed: ["server-initialize", "ping", "tools-list", "tools-call-with-progress"] },
])(
  "the gateway passes the MCP scenarios that revision $revision requires for tools",
  { timeout: 120_000 },
  async ({ revision, passed }) => {
    using folder = createTempFolder();
    await using gateway = Object.assign(createConformanceServer(), {
      async [Symbol.asyncDispose]() {
        await gateway.close();
      },
    });
    const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
    const expected = join(import.meta.dirname, `expected-failures-${revision}.yaml`);
    const url = `http://localhost:${port}/mcp`;
    const args = ["server", "--url", url, "--requirements", revision, "--expected-failures", expected];
    const run = promisify(execFile)(process.execPath, [program, ...args], { cwd: folder.path, maxBuffer: 2 ** 26 });
    const output = await run.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout.slice(stdout.indexOf("=== SUMMARY")),
    );
    expect(output).toContain("Baseline check passed");
    for (const scenario of passed) expect(output).toMatch(new RegExp(`✓ ${scenario}: [1-9][0-9]* passed, 0 failed`));
  },
);
