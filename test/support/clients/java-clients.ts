import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { layOutRecipe, protoFolder, testProtoFolder } from "./client-recipe.ts";
import { completeProgram } from "./documented-client.ts";

let built: Promise<string> | undefined;

// Generates and compiles both, and returns the class path.
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("java");
  const address = { authority: 'System.getenv("AUTHORITY")', url: 'System.getenv("URL")' };
  completeProgram(join(folder, "src/main/java/plantstore/client/Documented.java"), "java", address);
  const definitions = [`-Dproto.folder=${protoFolder}`, `-Dtest.proto.folder=${testProtoFolder}`];
  await buildStep("mvn", ["--batch-mode", "--quiet", ...definitions, "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return [classes, libraries].join(delimiter);
}

/** Builds a program of `test/clients/java/`, which is told by its class; what an earlier call has made is taken. */
export async function buildJavaClient(main: "Main" | "Documented"): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: ["java", "-cp", await built, `plantstore.client.${main}`] };
}
