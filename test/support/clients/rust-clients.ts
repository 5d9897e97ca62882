import { join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { toolsFolder } from "../process/tools-folder.ts";
import { buf, definitions, layOutRecipe } from "./client-recipe.ts";

/** Where cargo puts what it compiles: the same crates for every client. */
export const cargoTarget: string = join(toolsFolder("client-rust"), "target");

let built: Promise<string> | undefined;

// Generates and compiles it.
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("rust");
  const output = ["--as-file-descriptor-set", "-o", "definitions.binpb"];
  await buildStep(buf, ["build", ...definitions, ...output], { folder });
  await buildStep("cargo", ["build", "--locked"], { folder });
  return join(cargoTarget, "debug");
}

/** Builds the program of `test/clients/rust/`; what an earlier call has made is taken. */
export async function buildRustClient(): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: [join(await built, "plantstore-test-client")] };
}
