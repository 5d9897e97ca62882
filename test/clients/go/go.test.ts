import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { buildStep } from "../../support/build-step.ts";
import { type ClientProgram, describeClient } from "../../support/client-program.ts";
import { buf, layOutRecipe, openApiFile, protoFolder } from "../../support/client-recipe.ts";
import { completeProgram, describeDocumented } from "../../support/documented-client.ts";
import { hasProgram } from "../../support/tools-folder.ts";

const clients = ["grpc-go", "connect-go", "oapi-codegen"];

let built: Promise<string> | undefined;

/** Generates and compiles all three, once. */
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("go");
  const address = { authority: 'os.Getenv("AUTHORITY")', url: 'os.Getenv("URL")' };
  completeProgram(join(folder, "documented/main.go"), "go", address);
  await buildStep(buf, ["generate", protoFolder, "--path", join(protoFolder, "plantstore")], { folder });
  mkdirSync(join(folder, "openapi"), { recursive: true });
  const output = ["-generate", "types,client", "-package", "openapi", "-o", "openapi/client.go"];
  await buildStep("go", ["tool", "oapi-codegen", ...output, openApiFile], { folder });
  await buildStep("go", ["build", "-o", "bin/", ...[...clients, "documented"].map((name) => `./${name}`)], { folder });
  return folder;
}

async function build(name: string): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: [join(await built, "bin", name)] };
}

describe.runIf(hasProgram("go"))("Go", () => {
  for (const name of clients) describeClient({ name, build: () => build(name) });
  describeDocumented({ language: "go", build: () => build("documented") });
});
