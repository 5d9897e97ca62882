import { join } from "node:path";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";
import { sourceFiles } from "../../packages/testing/src/source-files.ts";

/** The folders of the source code, by the names that docs/explanation/architecture.md has for them. */
export const sourceFolders: Readonly<Record<string, string>> = {
  plantstore: "src",
  ...Object.fromEntries(
    ["gateway", "http-engine", "proxy", "rest-client", "docs-page", "auth", "telemetry"].map((name) => [
      name,
      `packages/${name}/src`,
    ]),
  ),
};

/** Returns the files of all source code, without generated ones, as `gateway/serve/serve.ts`. */
export function allSourceFiles(): string[] {
  return Object.entries(sourceFolders).flatMap(([name, folder]) =>
    sourceFiles(join(projectFolder, folder)).map((file) => `${name}/${file}`),
  );
}

/** Returns where a file of {@link allSourceFiles} is. */
export function sourcePath(file: string): string {
  const [name = "", ...rest] = file.split("/");
  return join(projectFolder, sourceFolders[name] ?? name, ...rest);
}
