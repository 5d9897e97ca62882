import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import { createOpenApi } from "../../../gateway/src/openapi/index.ts";
import { Catalog } from "../../../testing/src/gen/catalog/v1/catalog_pb.ts";
import { LibraryService } from "../../../testing/src/gen/library/v1/library_pb.ts";
import { startCatalog } from "../../../testing/src/gateway/catalog.ts";
import { buildStep, openPython, projectFolder, toolsFolder } from "@protoport/testing";

/** A program with its arguments, from the {@link layOutGenerators} folder or PATH. */
export type Step = readonly [program: string, ...args: string[]];

/** A client generator, and how to generate a client with it. */
export interface Generator {
  /** The generator's name, which is also the name of the recipe in `protoport/test/suites/generators/<tool>/`. */
  readonly tool: string;
  /** The generator's options, as in the table in protoport/docs/how-to/openapi.md. */
  readonly option?: string;
  /** Generates a client in the recipe's empty folder `client`, and compiles it. */
  readonly steps: readonly Step[];
  /** Runs the recipe's program, with the base URL as an additional argument. */
  readonly command: Step;
}

const recipes = join(projectFolder, "protoport/test/suites/generators");

/** The command that compiles a recipe in TypeScript. */
export const typeScriptStep = (name: string): Step => [
  "tsc",
  "--project",
  name,
  "--typeRoots",
  join(projectFolder, "node_modules/@types"),
];

// oxfmt-ignore
export const pythonClientStep: Step = [
  "openapi-python-client", "generate", "--path", "openapi.json", "--meta", "none", "--overwrite", "--output-path",
  "openapi-python-client/client",
];

export function openApiGeneratorStep(generator: string, output: string, ...properties: readonly string[]): Step {
  const input = ["--input-spec", "openapi.json", "--generator-name", generator, "--output", output];
  const more = ["hideGenerationTimestamp=true", ...properties].join(",");
  return ["openapi-generator-cli", "generate", ...input, "--additional-properties", more];
}

/** The recipes' folder outside the checkout, and the environment for their programs. */
export type GeneratorFolder = { readonly folder: string; readonly environment: Readonly<Record<string, string>> };

/** Copies `protoport/test/suites/generators/` out of the checkout, with its packages and the description. */
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

export async function expectWorkingClient(generator: Generator, generators: GeneratorFolder): Promise<void> {
  await buildClient(generator, generators);
  await using server = await startCatalog();
  const [program, ...args] = generator.command;
  const url = `http://127.0.0.1:${server.address.port}`;
  expect(await buildStep(program, [...args, url], generators)).toBe(transcript);
  const page = readFileSync(join(projectFolder, "protoport/docs/how-to/openapi.md"), "utf8");
  expect(page).toContain(generator.option ?? "## Generators");
}

/** Generates a client and compiles it. Rejects with the failing step's output. */
export async function buildClient(
  { tool, steps }: Pick<Generator, "tool" | "steps">,
  generators: GeneratorFolder,
): Promise<void> {
  const output = join(generators.folder, tool, "client");
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output);
  for (const [program, ...args] of steps) await buildStep(program, args, generators);
}

/** The output that every program prints. */
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
