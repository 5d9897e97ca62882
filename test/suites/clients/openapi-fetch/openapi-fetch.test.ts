import { cpSync } from "node:fs";
import { join } from "node:path";
import { buildStep, projectFolder } from "@protoport/testing/process";
import type { ClientProgram } from "../../../support/clients/client-program.ts";
import { layOutRecipe, openApiFile } from "../../../support/clients/client-recipe.ts";
import { describeClient } from "../../../support/clients/describe-client.ts";

describeClient({ name: "openapi-typescript and openapi-fetch", build });

async function build(): Promise<ClientProgram> {
  const folder = layOutRecipe("openapi-fetch");
  // Uses the same generator versions as protoport/test/suites/openapi.
  for (const file of ["package.json", "package-lock.json"])
    cpSync(join(projectFolder, "protoport/test/suites/generators", file), join(folder, file));
  await buildStep("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { folder });
  await buildStep("node_modules/.bin/openapi-typescript", [openApiFile, "--output", "openapi.d.ts"], { folder });
  const nodeTypes = ["--typeRoots", join(projectFolder, "node_modules/@types")];
  await buildStep(join(projectFolder, "node_modules/.bin/tsc"), ["--project", folder, ...nodeTypes], { folder });
  return { command: [process.execPath, "client.ts"], folder };
}
