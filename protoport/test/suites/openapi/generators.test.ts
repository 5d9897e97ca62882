import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { buildClient, expectWorkingClient, layOutGenerators, pythonClientStep, typeScriptStep
} from "../../support/clients/generated-client.ts";
import type { Generator, GeneratorFolder, Step } from "../../support/clients/generated-client.ts";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { Catalog } from "../../../testing/src/gen/catalog/v1/catalog_pb.ts";
import { buildLimitMs, hasProgram } from "@protoport/testing/process";

// Fast generators. protoport/test/suites/generators tests openapi-generator's each night.

const goBuild: Step = ["go", "build", "-o", "bin/oapi-codegen", "./oapi-codegen"];

// oxfmt-ignore
const generators: readonly Generator[] = [
  { tool: "openapi-fetch", option: "`Accept: application/json`",
    steps: [["openapi-typescript", "openapi.json", "--output", "openapi-fetch/client/schema.ts"],
      typeScriptStep("openapi-fetch")], command: ["node", "openapi-fetch/out/main.js"] },
  { tool: "orval", option: "version 8",
    steps: [["orval", "--config", "orval/orval.config.json"], typeScriptStep("orval")],
    command: ["node", "orval/out/main.js"] },
  { tool: "oapi-codegen", option: "response-type-suffix: Reply",
    steps: [["go", "tool", "oapi-codegen", "-config", "oapi-codegen/config.yaml", "openapi.json"], goBuild],
    command: ["bin/oapi-codegen"] },
  { tool: "openapi-python-client", option: "`Accept: application/json`", steps: [pythonClientStep],
    command: ["python", "openapi-python-client/main.py"] },
];

describe.runIf(hasProgram("go") && hasProgram("python3"))("a client generator", () => {
  let folder: GeneratorFolder;

  beforeAll(async () => {
    folder = await layOutGenerators();
  }, buildLimitMs);

  test.each(generators)(
    "$tool generates a working client",
    (generator) => expectWorkingClient(generator, folder),
    buildLimitMs,
  );

  test(
    "oapi-codegen requires the documented option",
    async () => {
      const output = ["-generate", "types,client", "-package", "client", "-o", "oapi-codegen/client/client.go"];
      const document = createOpenApi([Catalog], { info: { title: "Catalog", version: "1" }, operationIds: "rpc" });
      writeFileSync(join(folder.folder, "rpc.json"), JSON.stringify(document));
      const steps: readonly Step[] = [["go", "tool", "oapi-codegen", ...output, "rpc.json"], goBuild];
      const failure = "BatchGetBooksResponse redeclared";
      await expect(buildClient({ tool: "oapi-codegen", steps }, folder)).rejects.toThrow(failure);
    },
    buildLimitMs,
  );
});
