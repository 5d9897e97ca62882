import { join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { buf, definitions, layOutRecipe } from "./client-recipe.ts";
import { completeProgram } from "./documented-client.ts";

let built: Promise<string> | undefined;

// Generates and compiles all of them.
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("rust");
  const address = { authority: 'std::env::var("AUTHORITY")?', url: 'std::env::var("URL")?' };
  completeProgram(join(folder, "src/bin/documented.rs"), "rust", address);
  const output = ["--as-file-descriptor-set", "-o", "definitions.binpb"];
  await buildStep(buf, ["build", ...definitions, ...output], { folder });
  await buildStep("cargo", ["build", "--locked"], { folder });
  return join(folder, "target/debug");
}

/** Builds a program of `test/clients/rust/`: its own, or that of docs/clients.md, "documented". What an earlier call has made is taken. */
export async function buildRustClient(name: "plantstore-test-client" | "documented"): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: [join(await built, name)] };
}
