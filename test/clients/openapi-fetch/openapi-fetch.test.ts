import { join } from "node:path";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { layOutRecipe, openApiFile } from "../../support/client-recipe.ts";
import { projectFolder } from "../../support/child-program.ts";

describeClient({ name: "openapi-typescript and openapi-fetch", build });

async function build(): Promise<ClientProgram> {
  const folder = layOutRecipe("openapi-fetch");
  await buildStep("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { folder });
  await buildStep("node_modules/.bin/openapi-typescript", [openApiFile, "--output", "openapi.d.ts"], { folder });
  const nodeTypes = ["--typeRoots", join(projectFolder, "node_modules/@types")];
  await buildStep(join(projectFolder, "node_modules/.bin/tsc"), ["--project", folder, ...nodeTypes], { folder });
  return { command: [process.execPath, "client.ts"], folder };
}
