import { join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { buf, layOutRecipe, protoFolder } from "../../support/client-recipe.ts";
import { hasProgram } from "../../support/tools-folder.ts";

async function build(): Promise<ClientProgram> {
  const folder = layOutRecipe("rust");
  const definition = ["--path", join(protoFolder, "plantstore"), "--as-file-descriptor-set", "-o", "plantstore.binpb"];
  await buildStep(buf, ["build", protoFolder, ...definition], { folder });
  await buildStep("cargo", ["build", "--locked"], { folder });
  return { command: [join(folder, "target/debug/plantstore-test-client")] };
}

describe.runIf(hasProgram("cargo"))("Rust", () => {
  // tonic says CANCELLED of a deadline that it has watched itself.
  describeClient({ name: "tonic", build, onDeadline: /^1 Timeout expired$/ });
});
