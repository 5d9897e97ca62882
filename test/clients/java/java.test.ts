import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { layOutRecipe, protoFolder } from "../../support/client-recipe.ts";
import { hasProgram } from "../../support/tools-folder.ts";

async function build(): Promise<ClientProgram> {
  const folder = layOutRecipe("java");
  await buildStep("mvn", ["--batch-mode", "--quiet", `-Dproto.folder=${protoFolder}`, "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return { command: ["java", "-cp", [classes, libraries].join(delimiter), "plantstore.client.Main"] };
}

describe.runIf(hasProgram("java") && hasProgram("mvn"))("Java", () => {
  describeClient({ name: "grpc-java", build });
});
