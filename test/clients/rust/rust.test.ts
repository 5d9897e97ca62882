import { join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { buf, layOutRecipe, protoFolder } from "../../support/client-recipe.ts";
import { completeProgram, describeDocumented } from "../../support/documented-client.ts";
import { hasProgram } from "../../support/tools-folder.ts";

let built: Promise<string> | undefined;

/** Generates and compiles both programs, once. */
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("rust");
  const address = { authority: 'std::env::var("AUTHORITY")?', url: 'std::env::var("URL")?' };
  completeProgram(join(folder, "src/bin/documented.rs"), "rust", address);
  const definition = ["--path", join(protoFolder, "plantstore"), "--as-file-descriptor-set", "-o", "plantstore.binpb"];
  await buildStep(buf, ["build", protoFolder, ...definition], { folder });
  await buildStep("cargo", ["build", "--locked"], { folder });
  return join(folder, "target/debug");
}

async function build(name: string): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: [join(await built, name)] };
}

describe.runIf(hasProgram("cargo"))("Rust", () => {
  // tonic says CANCELLED of a deadline that it has watched itself.
  describeClient({ name: "tonic", build: () => build("plantstore-test-client"), onDeadline: /^1 Timeout expired$/ });
  describeDocumented({ language: "rust", build: () => build("documented") });
});
