import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createOpenApi } from "../../src/gateway/index.ts";
import type { PlantStore } from "../../src/plants/index.ts";
import { KitchenSink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { buildLimitMs, buildStep } from "../support/build-step.ts";
import { projectFolder } from "../support/child-program.ts";
import { startKitchenSink } from "../support/kitchen-sink.ts";
import { startPlantServer, tokens } from "../support/plant-server.ts";
import { openPython } from "../support/python.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { toolsFolder } from "../support/tools-folder.ts";

// Descriptions as the tools of their users see them: a linter, and a fuzzer that holds the running server to them.

const document = join(projectFolder, "openapi.json");

/** A store in which every plant is there, so that whatever the description allows has to be accepted. */
const everyPlant: PlantStore = {
  problem: undefined,
  delete: async () => true,
  close: async () => undefined,
};

let programs: string;

async function lint(file: string, rules: string): Promise<string> {
  const redocly = join(import.meta.dirname, "node_modules/.bin/redocly");
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  return await buildStep(redocly, ["lint", "--extends", rules, file], { environment });
}

/** Sends what a description allows, or what it does not, and returns how many requests were well answered. */
async function fuzz(file: string, url: string, options: Readonly<Record<string, string>>): Promise<number> {
  const flags = Object.entries({ url, "generation-database": "none", ...options }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ]);
  const args = ["run", file, "--generation-unique-inputs", ...flags];
  const output = await buildStep(join(programs, "schemathesis"), args, {
    // It keeps a folder of its own where it runs.
    folder: toolsFolder("schemathesis"),
  });
  const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
  expect(passed).toBe(generated);
  return Number(passed);
}

beforeAll(async () => {
  programs = await openPython(join(import.meta.dirname, "requirements.txt"));
}, buildLimitMs);

test("redocly finds nothing to complain of in the plant store", async () => {
  const output = await lint(document, "recommended-strict");
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
    const passed = await fuzz(document, `http://127.0.0.1:${server.address.port}`, {
      header: `Authorization: Bearer ${tokens.good}`,
      checks: "all",
      "exclude-checks": otherPolicy.join(","),
      mode,
      "max-examples": "1000",
    });
    expect(passed).toBeGreaterThanOrEqual(least);
  },
  buildLimitMs,
);

// What a gateway does with any service: proto3 JSON takes more than a description can say, so that of what is
// not allowed some is accepted; the answers have to be as described all the same.
const answersAsDescribed = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
];

test(
  "every feature of HTTP rules is described as the gateway serves it",
  async () => {
    using folder = createTempFolder();
    await using gateway = await startKitchenSink();
    const file = folder.file("kitchen-sink.json");
    const url = `http://127.0.0.1:${gateway.address.port}`;
    const info = { title: "Kitchen sink", version: "1" };
    writeFileSync(file, JSON.stringify(createOpenApi([KitchenSink], { info, servers: [{ url }] })));
    expect(await lint(file, "spec")).toContain("Your API description is valid");
    const passed = await fuzz(file, url, {
      checks: answersAsDescribed.join(","),
      phases: "fuzzing",
      "max-examples": "5",
      // Fails as it is asked to, also with 500.
      "exclude-operation-id": "fail",
    });
    expect(passed).toBeGreaterThanOrEqual(300);
  },
  buildLimitMs,
);
