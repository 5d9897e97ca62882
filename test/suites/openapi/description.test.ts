import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createOpenApi } from "../../../packages/gateway/src/index.ts";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { FileService } from "../../../packages/testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink } from "../../../packages/testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../packages/testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../packages/testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { buildLimitMs, buildStep } from "../../../packages/testing/src/process/build-step.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { startKitchenSink, withoutMasks } from "../../../packages/testing/src/gateway/kitchen-sink.ts";
import { fuzz, openSchemathesis } from "../../../packages/testing/src/process/schemathesis.ts";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { fakeStore } from "../../support/plants/fake-store.ts";

// Checks descriptions with tools of their users: a linter, and a fuzzer that compares the running server with them.

const document = join(projectFolder, "openapi.json");

/** A store in which all plants exist, so that all requests that the description allows must succeed. */
const everyPlant = fakeStore({ delete: async () => true });

let programs: string;

/** Lints a document with the rules of the specification, or with the stricter ones of redocly.yaml. */
async function lint(file: string, rules: "spec" | "strict"): Promise<string> {
  const redocly = join(import.meta.dirname, "node_modules/.bin/redocly");
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const which = rules === "spec" ? ["--extends", rules] : ["--config", join(import.meta.dirname, "redocly.yaml")];
  return await buildStep(redocly, ["lint", ...which, file], { environment });
}

beforeAll(async () => {
  programs = await openSchemathesis();
}, buildLimitMs);

// The information that only the owner of a service has; everything else that the linter requires is derived.
const kitchenSink = createOpenApi([KitchenSink, Shelves, LegacySink, FileService], {
  info: {
    title: "Kitchen sink",
    version: "1",
    description: "Everything.",
    license: { name: "MIT", identifier: "MIT" },
    contact: { name: "Kitchen" },
  },
  servers: [{ url: "https://sink.example" }],
  security: { bearer: { type: "http", scheme: "bearer" } },
});

test.each([
  { what: "the plant store", text: readFileSync(document) },
  { what: "the kitchen sink", text: JSON.stringify(kitchenSink) },
])("redocly finds no problems in $what", async ({ text }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("openapi.json"), text);
  const output = await lint(folder.file("openapi.json"), "strict");
  expect(output).toContain("Your API description is valid");
  expect(output).not.toMatch(/warning/i);
});

test("redocly finds no problems in streams and binary bodies in OpenAPI 3.2", async () => {
  using folder = createTempFolder();
  const name = GreenhouseService.typeName;
  const rules = [
    { selector: `${name}.WatchReadings`, pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
    { selector: `${name}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
    { selector: `${name}.ControlClimate`, pattern: { case: "post", value: "/climate" }, body: "*" },
  ] as const;
  const info = { title: "Streams", version: "1" };
  const described = createOpenApi([GreenhouseService, FileService], { openapi: "3.2.0", info, rest: { rules } });
  const file = folder.file("streams.json");
  writeFileSync(file, JSON.stringify(described));
  expect(await lint(file, "spec")).toContain("Your API description is valid");
  // redocly checks the version: members of OpenAPI 3.2 are errors in others.
  writeFileSync(file, JSON.stringify({ ...described, openapi: "3.1.0" }));
  await expect(lint(file, "spec")).rejects.toThrow("itemSchema");
});

// The specification has a single status for errors, 400, but schemathesis expects 401 for a missing credential.
const otherPolicy = ["missing_required_header", "ignored_auth"];

test.each([
  { mode: "positive", what: "valid requests are accepted", least: 100 },
  { mode: "negative", what: "invalid requests are refused", least: 300 },
])(
  "schemathesis finds that $what with the described responses, in at least $least requests",
  async ({ mode, least }) => {
    await using server = await startPlantServer({ store: everyPlant });
    let passed = 0;
    // One after the other: in one run, the few cases of the first would leave hardly any for the second.
    for (const phases of ["coverage", "fuzzing"]) {
      passed += await fuzz(programs, document, `http://127.0.0.1:${server.address.port}`, {
        header: `Authorization: Bearer ${tokens.good}`,
        checks: "all",
        "exclude-checks": otherPolicy.join(","),
        phases,
        mode,
        "max-examples": "1000",
      });
    }
    expect(passed).toBeGreaterThanOrEqual(least);
  },
  buildLimitMs,
);

// A gateway serves any service, and proto3 JSON accepts more than a description can express, such as numbers for enums,
// which an echoed response then contains. So the schema of responses is checked only for valid requests.
const commonChecks = ["not_a_server_error", "status_code_conformance", "content_type_conformance"];

test.each([
  { mode: "positive", what: "valid requests", checks: [...commonChecks, "response_schema_conformance"] },
  { mode: "negative", what: "invalid requests", checks: commonChecks },
])(
  "the description of all features of HTTP rules matches the gateway for $what",
  async ({ mode, checks }) => {
    using folder = createTempFolder();
    await using gateway = await startKitchenSink({ interceptors: [withoutMasks] });
    const file = folder.file("kitchen-sink.json");
    const url = `http://127.0.0.1:${gateway.address.port}`;
    const info = { title: "Kitchen sink", version: "1" };
    writeFileSync(file, JSON.stringify(createOpenApi([KitchenSink], { info, servers: [{ url }] })));
    expect(await lint(file, "spec")).toContain("Your API description is valid");
    const passed = await fuzz(programs, file, url, {
      checks: checks.join(","),
      phases: "fuzzing",
      mode,
      "max-examples": "5",
      // Fails as requested, also with status 500.
      "exclude-operation-id": "fail",
    });
    expect(passed).toBeGreaterThanOrEqual(200);
  },
  buildLimitMs,
);
