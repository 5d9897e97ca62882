import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { projectFolder } from "../../testing/src/process/child-program.ts";

/** A folder with the code that ts-proto has generated. Dispose of it when the code is no longer used. */
export interface TsProtoCode extends Disposable {
  readonly folder: string;
}

/** Generates code with ts-proto for the definitions in some folders, in a folder that finds the project's packages. */
export function generateTsProto(folders: readonly string[], options: readonly string[]): TsProtoCode {
  const folder = mkdtempSync(join(projectFolder, "protoport/grpc-handlers/test/code-blocks-"));
  const config = { version: "v2", modules: folders.map((path) => ({ path: relative(projectFolder, path) })) };
  const opt = [...options, "esModuleInterop=true", "importSuffix=.ts", "env=node", "enumsAsLiterals=true"];
  const template = { version: "v2", plugins: [{ local: "protoc-gen-ts_proto", out: folder, opt }] };
  const args = ["generate", ".", "--config", JSON.stringify(config), "--template", JSON.stringify(template)];
  execFileSync("buf", args, { cwd: projectFolder });
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
