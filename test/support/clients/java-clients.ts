import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { layOutRecipe, protoFolder, testProtoFolder } from "./client-recipe.ts";

let built: Promise<string> | undefined;

// Generates and compiles it, and returns the class path.
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("java");
  const definitions = [`-Dproto.folder=${protoFolder}`, `-Dtest.proto.folder=${testProtoFolder}`];
  await buildStep("mvn", ["--batch-mode", "--quiet", ...definitions, "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return [classes, libraries].join(delimiter);
}

/** Builds the program of `test/clients/java/`; what an earlier call has made is taken. */
export async function buildJavaClient(): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: ["java", "-cp", await built, "plantstore.client.Main"] };
}
