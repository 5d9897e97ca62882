import { cpSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { toolsFolder } from "../../../packages/testing/src/process/tools-folder.ts";

/** The definition from which clients are generated. */
export const protoFolder: string = join(projectFolder, "proto");

/** Definitions of Google that the others import. */
export const googleProtoFolder: string = join(projectFolder, "packages/gateway/proto");

/** Definitions that are for tests alone. */
export const testProtoFolder: string = join(projectFolder, "packages/testing/proto");

/** What buf is to generate a client of: arguments for `generate` and `build`. */
export const definitions: readonly string[] = [
  projectFolder,
  `--config=${join(testProtoFolder, "buf.workspace.yaml")}`,
  `--path=${join(protoFolder, "plantstore")}`,
  `--path=${join(testProtoFolder, "streams")}`,
];

/** The description of the REST interface, as users have it. */
export const openApiFile: string = join(projectFolder, "openapi.json");

/** The buf of this project; it runs the plugins of every language. */
export const buf: string = join(projectFolder, "node_modules/.bin/buf");

/**
 * Copies the recipe of a client, `test/suites/clients/<name>/`, to a folder outside of the checkout, where its code
 * is generated and compiled, and returns that folder. What an earlier run has made there stays, for compilers
 * that look at the times of files.
 */
export function layOutRecipe(name: string): string {
  const folder = toolsFolder(`client-${name}`);
  cpSync(recipeFolder(name), folder, { recursive: true, preserveTimestamps: true });
  return folder;
}

/** Where the recipe of a client is. */
export function recipeFolder(name: string): string {
  return join(projectFolder, "test/suites/clients", name);
}
