import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createOpenApi } from "@protoport/gateway/openapi";
import { GreenhouseService } from "../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { FileService } from "../../../protoport/testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink } from "../../../protoport/testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../protoport/testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../protoport/testing/src/gen/kitchensink/v1/shelves_pb.ts";
// oxfmt-ignore
import { buildLimitMs, buildStep, createTempFolder, isNightly, projectFolder, startKitchenSink, withoutMasks
} from "@protoport/testing";
import { fuzz, openSchemathesis } from "../../../protoport/testing/src/process/schemathesis.ts";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";
import { fakeStore } from "../../support/plants/fake-store.ts";

// Checks descriptions with a linter, and with a fuzzer that compares the running server with them.

const document = join(projectFolder, "openapi.json");
/** A store in which all plants exist, so that all requests that the description allows must succeed. */
const everyPlant = fakeStore({ delete: async () => true });

let programs: string;

/** Lints a document with the specification's rules, the default rules, or the stricter ones in redocly.yaml. */
async function lint(file: string, rules: "spec" | "default" | "strict"): Promise<string> {
  const redocly = join(projectFolder, "protoport/test/suites/openapi/node_modules/.bin/redocly");
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const strict = ["--config", join(import.meta.dirname, "redocly.yaml")];
  const which = { spec: ["--extends", "spec"], default: [], strict }[rules];
  // redocly looks for a configuration in its working directory.
  return await buildStep(redocly, ["lint", ...which, file], { environment, folder: dirname(file) });
}

beforeAll(async () => void (programs = await openSchemathesis()), buildLimitMs);

// The information that only a service's owner has. Everything else that the linter requires is derived.
const kitchenSink = createOpenApi([KitchenSink, Shelves, LegacySink, FileService], {
  info: {
    title: "Kitchen sink",
    version: "1",
    description: "Everything.",
    license: { name: "MIT", identifier: "MIT" },
    contact: { name: "Kitchen" },
  },
  servers: [{ url: "https://sink.example" }],
  securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
});

test.each([
  { what: "the plant store", text: readFileSync(document) },
  { what: "the kitchen sink", text: JSON.stringify(kitchenSink) },
])("the description of $what has no problems in redocly", async ({ text }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("openapi.json"), text);
  const output = await lint(folder.file("openapi.json"), "strict");
  expect(output).toContain("Your API description is valid");
  expect(output).not.toMatch(/warning/i);
});

test.each(["3.1.0", "3.2.0"] as const)(
  "a minimal OpenAPI %s document passes redocly's default rules",
  async (openapi) => {
    using folder = createTempFolder();
    const file = folder.file("openapi.json");
    const info = { title: "Kitchen sink", version: "1", license: { name: "MIT", identifier: "MIT" } };
    const services = [KitchenSink, Shelves, LegacySink, FileService];
    writeFileSync(file, JSON.stringify(createOpenApi(services, { openapi, info })));
    const output = await lint(file, "default");
    expect(output).toContain("using built in recommended configuration");
    expect(output).toContain("Your API description is valid");
    expect(output).not.toMatch(/warning/i);
  },
);

test("redocly finds no problems in OpenAPI 3.2 streams and binary bodies", async () => {
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
  // redocly checks the version. Members that OpenAPI 3.2 adds are errors in other versions.
  writeFileSync(file, JSON.stringify({ ...described, openapi: "3.1.0" }));
  await expect(lint(file, "spec")).rejects.toThrow("itemSchema");
});

// The specification has a single status for errors, 400, but schemathesis expects 401 for a missing credential.
const otherPolicy = ["missing_required_header", "ignored_auth"];

// Concurrent, because schemathesis uses a single core.
test.concurrent.each([
  { mode: "positive", what: "valid requests are accepted", least: 100 },
  { mode: "negative", what: "invalid requests are refused", least: 300 },
])(
  "schemathesis finds that $what as described, in at least $least requests",
  async ({ mode, least }) => {
    await using server = await startPlantServer({ store: everyPlant });
    let generated = 0;
    // Separate runs, because in one run the first phase would leave hardly any cases for the second.
    for (const phases of ["coverage", "fuzzing"]) {
      // oxfmt-ignore
      const result = await fuzz(programs, document, `http://127.0.0.1:${server.address.port}`, {
        header: `Authorization: Bearer ${tokens.good}`, checks: "all", "exclude-checks": otherPolicy.join(","), phases,
        mode, "max-examples": "1000",
      });
      expect(result.failures).toEqual([]);
      generated += result.generated;
    }
    expect(generated).toBeGreaterThanOrEqual(least);
  },
  buildLimitMs,
);

// What a description cannot express, as `protoport/docs/how-to/openapi.md` lists it.
const inexpressible: readonly RegExp[] = [
  // Parameters that exclude each other.
  /query parameter .*: cannot be set together with/,
  // The types registered for a google.protobuf.Any.
  /: unknown type /,
  // A limit on all parameters together.
  /the URL is longer than 8192 bytes/,
  // proto3 JSON reads null as an unset field. Described as nullable, it would be another type in most languages.
  /in body - violates `type` \(was \w+, became null\)\n\n\[200\]/,
];

test.concurrent.each([
  { mode: "positive", what: "valid requests are accepted" },
  { mode: "negative", what: "invalid requests are refused" },
])(
  "schemathesis finds that $what for every field type",
  async ({ mode }) => {
    using folder = createTempFolder();
    await using gateway = await startKitchenSink({ interceptors: [withoutMasks] });
    const file = folder.file("kitchen-sink.json");
    const url = `http://127.0.0.1:${gateway.address.port}`;
    const info = { title: "Kitchen sink", version: "1" };
    writeFileSync(file, JSON.stringify(createOpenApi([KitchenSink], { info, servers: [{ url }] })));
    const { generated, failures } = await fuzz(programs, file, url, {
      checks: "all",
      // Trying all parameters' boundaries takes two minutes.
      phases: isNightly ? "coverage,fuzzing" : "fuzzing",
      mode,
      "max-examples": "5",
      // Fails as requested, also with status 500.
      "exclude-operation-id": "v1_KitchenSink_fail",
      // Responses to HEAD have no body, so they do not state why a request is refused.
      "exclude-method": "HEAD",
    });
    expect(failures.filter((failure) => !inexpressible.some((reason) => reason.test(failure)))).toEqual([]);
    expect(generated).toBeGreaterThanOrEqual(300);
  },
  buildLimitMs,
);
