import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import { createOpenApi } from "../../../packages/gateway/src/index.ts";
import { Catalog } from "../../../packages/testing/src/gen/catalog/v1/catalog_pb.ts";
import { LibraryService } from "../../../packages/testing/src/gen/library/v1/library_pb.ts";
import { startCatalog } from "../../../packages/testing/src/gateway/catalog.ts";
import { buildStep } from "../../../packages/testing/src/process/build-step.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { openPython } from "../../../packages/testing/src/process/python.ts";
import { toolsFolder } from "../../../packages/testing/src/process/tools-folder.ts";

/** A program in the folder of {@link layOutGenerators} or on PATH, with its arguments. */
export type Step = readonly [program: string, ...args: string[]];

/** A client generator, and how to generate a client with it. */
export interface Generator {
  /** Its name, and that of its recipe, `test/suites/generators/<tool>/`. */
  readonly tool: string;
  /** Its options, as in the table in docs/how-to/openapi.md. */
  readonly option?: string;
  /** Generates a client in the empty folder `client` of the recipe, and compiles it. */
  readonly steps: readonly Step[];
  /** Runs the program of the recipe, with the base URL as an additional argument. */
  readonly command: Step;
}

/** The folder of the recipes. */
const recipes = join(projectFolder, "test/suites/generators");

/** The command that compiles a recipe in TypeScript. */
export function typeScriptStep(name: string): Step {
  return ["tsc", "--project", name, "--typeRoots", join(projectFolder, "node_modules/@types")];
}

/** Runs openapi-python-client. */
export const pythonClientStep: Step = [
  "openapi-python-client",
  "generate",
  "--path",
  "openapi.json",
  "--meta",
  "none",
  "--overwrite",
  "--output-path",
  "openapi-python-client/client",
];

/** Runs openapi-generator for a language. */
export function openApiGeneratorStep(generator: string, output: string, ...properties: readonly string[]): Step {
  const input = ["--input-spec", "openapi.json", "--generator-name", generator, "--output", output];
  const more = ["hideGenerationTimestamp=true", ...properties].join(",");
  return ["openapi-generator-cli", "generate", ...input, "--additional-properties", more];
}

/** The folder of the recipes outside the checkout, and the environment of their programs. */
export interface GeneratorFolder {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Copies `test/suites/generators/` to a folder outside the checkout, with its packages and the description of two
 * services with common names of RPCs and messages.
 */
export async function layOutGenerators(): Promise<GeneratorFolder> {
  const folder = toolsFolder("generators");
  cpSync(recipes, folder, { recursive: true, preserveTimestamps: true });
  const programs = await openPython(join(recipes, "requirements.txt"));
  await buildStep("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { folder });
  const document = createOpenApi([Catalog, LibraryService], { info: { title: "Catalog", version: "1" } });
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(document));
  const own = [join(projectFolder, "node_modules/.bin"), join(folder, "node_modules/.bin"), programs];
  return { folder, environment: { PATH: [...own, process.env["PATH"]].join(delimiter) } };
}

/** Generates a client, compiles it, and compares its program's output with that of all clients. */
export async function expectWorkingClient(generator: Generator, generators: GeneratorFolder): Promise<void> {
  await buildClient(generator, generators);
  await using server = await startCatalog();
  const [program, ...args] = generator.command;
  const url = `http://127.0.0.1:${server.address.port}`;
  expect(await buildStep(program, [...args, url], generators)).toBe(transcript);
  const page = readFileSync(join(projectFolder, "docs/how-to/openapi.md"), "utf8");
  expect(page).toContain(generator.option ?? "## Generators");
}

/** Generates a client and compiles it. Rejects with the output of the step that fails. */
export async function buildClient(
  { tool, steps }: Pick<Generator, "tool" | "steps">,
  generators: GeneratorFolder,
): Promise<void> {
  const output = join(generators.folder, tool, "client");
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output);
  for (const [program, ...args] of steps) await buildStep(program, args, generators);
}

/** The output of all programs. */
const transcript = `created STATE_SHELVED 9007199254740993 AAH+ damp
pages: Moss, Fern, end
updated Mosses Flora
lent Ann STATE_RUNNING 1798135200
out: Mosses
watched: Mosses Fern
scan 0001fe0d0aff
batch: Fern Mosses
gone 404 shelves/green/books/moss not found
`;
