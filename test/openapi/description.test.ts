import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { PlantStore } from "../../src/plants/index.ts";
import { buildLimitMs, buildStep } from "../support/build-step.ts";
import { projectFolder } from "../support/child-program.ts";
import { startPlantServer, tokens } from "../support/plant-server.ts";
import { openPython } from "../support/python.ts";
import { toolsFolder } from "../support/tools-folder.ts";

// openapi.json as the tools of its users see it: a linter, and a fuzzer that holds the running server to it.

const document = join(projectFolder, "openapi.json");

/** A store in which every plant is there, so that whatever the description allows has to be accepted. */
const everyPlant: PlantStore = {
  problem: undefined,
  delete: async () => true,
  close: async () => undefined,
};

let programs: string;

beforeAll(async () => {
  programs = await openPython(join(import.meta.dirname, "requirements.txt"));
}, buildLimitMs);

test("redocly finds nothing to complain of", async () => {
  const redocly = join(import.meta.dirname, "node_modules/.bin/redocly");
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const output = await buildStep(redocly, ["lint", "--extends", "recommended-strict", document], { environment });
  expect(output).toContain("Your API description is valid");
  expect(output).not.toMatch(/warning/i);
});

// The specification has one status for errors, 400, where schemathesis wants 401 for a credential that is missing.
const otherPolicy = ["missing_required_header", "ignored_auth"];

test.each([
  { mode: "positive", what: "what the description allows is accepted", least: 100 },
  { mode: "negative", what: "what it does not allow is refused", least: 300 },
])(
  "schemathesis finds that $what, and answered as described, in $least requests and more",
  async ({ mode, least }) => {
    await using server = await startPlantServer({ store: everyPlant });
    const url = `http://127.0.0.1:${server.address.port}`;
    const target = [document, "--url", url, "--header", `Authorization: Bearer ${tokens.good}`];
    const checks = ["--checks", "all", "--exclude-checks", otherPolicy.join(",")];
    const data = [
      "--mode",
      mode,
      "--max-examples",
      "1000",
      "--generation-unique-inputs",
      "--generation-database",
      "none",
    ];
    const output = await buildStep(join(programs, "schemathesis"), ["run", ...target, ...checks, ...data], {
      // It keeps a folder of its own where it runs.
      folder: toolsFolder("schemathesis"),
    });
    const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
    expect(passed).toBe(generated);
    expect(Number(generated)).toBeGreaterThanOrEqual(least);
  },
  buildLimitMs,
);
