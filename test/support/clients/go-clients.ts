import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildStep } from "../process/build-step.ts";
import type { ClientProgram } from "./client-program.ts";
import { buf, definitions, layOutRecipe, openApiFile } from "./client-recipe.ts";

/** The clients of Go whose programs are in `test/clients/go/`. */
export const goClients = ["grpc-go", "connect-go", "oapi-codegen"] as const;

let built: Promise<string> | undefined;

// Generates and compiles all of them.
async function buildAll(): Promise<string> {
  const folder = layOutRecipe("go");
  await buildStep(buf, ["generate", ...definitions], { folder });
  mkdirSync(join(folder, "openapi"), { recursive: true });
  const output = ["-generate", "types,client", "-package", "openapi", "-o", "openapi/client.go"];
  await buildStep("go", ["tool", "oapi-codegen", ...output, openApiFile], { folder });
  await buildStep("go", ["build", "-o", "bin/", ...goClients.map((name) => `./${name}`)], {
    folder,
  });
  return folder;
}

/** Builds one of {@link goClients}; what an earlier call has made is taken. */
export async function buildGoClient(name: string): Promise<ClientProgram> {
  built ??= buildAll();
  return { command: [join(await built, "bin", name)] };
}
