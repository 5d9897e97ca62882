import { cpSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";

export const protoFolder: string = join(projectFolder, "proto");
/** Google's definitions that the others import. */
export const googleProtoFolder: string = join(projectFolder, "protoport/gateway/proto");

export const testProtoFolder: string = join(projectFolder, "protoport/testing/proto");

/** Arguments to buf's `generate` and `build` that select the clients' definition. */
export const definitions: readonly string[] = [
  projectFolder,
  `--config=${join(testProtoFolder, "buf.workspace.yaml")}`,
  `--path=${join(protoFolder, "plantstore")}`,
  `--path=${join(testProtoFolder, "streams")}`,
];

/** The REST API's description as users get it. */
export const openApiFile: string = join(projectFolder, "openapi.json");
/** This project's buf, which runs the plugins for all languages. */
export const buf: string = join(projectFolder, "node_modules/.bin/buf");

/** Copies `test/suites/clients/<name>/` out of the checkout. Keeps earlier output for incremental builds. */
export function layOutRecipe(name: string): string {
  const folder = toolsFolder(`client-${name}`);
  cpSync(recipeFolder(name), folder, { recursive: true, preserveTimestamps: true });
  return folder;
}

export const recipeFolder = (name: string): string => join(projectFolder, "test/suites/clients", name);
