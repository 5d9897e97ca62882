import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
// oxfmt-ignore
import { buildClient, expectWorkingClient, layOutGenerators, openApiGeneratorStep, typeScriptStep
} from "../../support/clients/generated-client.ts";
import type { Generator, GeneratorFolder, Step } from "../../support/clients/generated-client.ts";
import { buildLimitMs, buildStep } from "@protoport/testing/process";

const goClient = ["packageName=client", "withGoMod=false"];
const goBuild: Step = ["go", "build", "-o", "bin/go", "./go"];

// oxfmt-ignore
const generators: readonly Generator[] = [
  { tool: "typescript-fetch", option: "importFileExtension=.js",
    steps: [openApiGeneratorStep("typescript-fetch", "typescript-fetch/client", "importFileExtension=.js"),
      typeScriptStep("typescript-fetch")], command: ["node", "typescript-fetch/out/main.js"] },
  { tool: "python", steps: [openApiGeneratorStep("python", "python", "packageName=client")],
    command: ["python", "python/main.py"] },
  { tool: "go", option: "enumClassPrefix=true",
    steps: [openApiGeneratorStep("go", "go/client", ...goClient, "enumClassPrefix=true"), goBuild],
    command: ["bin/go"] },
  { tool: "java", steps: [openApiGeneratorStep("java", "java/client"),
      ["mvn", "--batch-mode", "--quiet", "--file", "java/pom.xml", "compile"]],
    command: ["sh", "-c", 'exec java -cp java/target/classes:$(cat java/target/classpath) Main "$1"', "java"] },
];

let folder: GeneratorFolder;

beforeAll(async () => {
  folder = await layOutGenerators();
}, buildLimitMs);

test.each(generators)(
  "openapi-generator for $tool generates a working client",
  (generator) => expectWorkingClient(generator, folder),
  buildLimitMs,
);

test(
  "openapi-generator for Go requires the documented option",
  async () => {
    const steps = [openApiGeneratorStep("go", "go/client", ...goClient), goBuild];
    await expect(buildClient({ tool: "go", steps }, folder)).rejects.toThrow("STATE_UNSPECIFIED redeclared");
  },
  buildLimitMs,
);

test.each(["python", "typescript-fetch", "go", "java"])(
  "openapi-generator for %s creates no extra types for oneof exclusions",
  async (language) => {
    const document = createOpenApi([KitchenSink], { info: { title: "Kitchen sink", version: "1" } });
    writeFileSync(join(folder.folder, "oneofs.json"), JSON.stringify(document));
    const output = join(folder.folder, "oneofs", language);
    rmSync(output, { recursive: true, force: true });
    const flags = ["--input-spec", "oneofs.json", "--generator-name", language, "--output", output];
    await buildStep("openapi-generator-cli", ["generate", ...flags, "--global-property", "models"], folder);
    const types = readdirSync(output, { recursive: true, encoding: "utf8" });
    expect(types.filter((name) => /sink\.\w+$/i.test(name))).not.toEqual([]);
    expect(types.filter((name) => /sink_?(not|any_?of|one_?of|all_?of)/i.test(name))).toEqual([]);
  },
  buildLimitMs,
);
