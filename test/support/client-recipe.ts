import { cpSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "./child-program.ts";
import { toolsFolder } from "./tools-folder.ts";

/** The definition from which clients are generated. */
export const protoFolder: string = join(projectFolder, "proto");

/** The description of the REST interface, as users have it. */
export const openApiFile: string = join(projectFolder, "openapi.json");

/** The buf of this project; it runs the plugins of every language. */
export const buf: string = join(projectFolder, "node_modules/.bin/buf");

/**
 * Copies the recipe of a client, `test/clients/<name>/`, to a folder outside of the checkout, where its code
 * is generated and compiled, and returns that folder. What an earlier run has made there stays, for compilers
 * that look at the times of files.
 */
export function layOutRecipe(name: string): string {
  const folder = toolsFolder(`client-${name}`);
  cpSync(join(projectFolder, "test/clients", name), folder, { recursive: true, preserveTimestamps: true });
  return folder;
}
