import { join } from "node:path";
import { projectFolder } from "../../protoport/testing/src/process/child-program.ts";
import { sourceFiles } from "../../protoport/testing/src/source-files.ts";

/** The source folders, by their names in protoport/docs/explanation/architecture.md. */
export const sourceFolders: Readonly<Record<string, string>> = {
  plantstore: "src",
  ...Object.fromEntries(
    [
      "http",
      "protobuf",
      "protocols",
      "serve",
      "openapi",
      "mcp",
      "validation",
      "command-line",
      "gateway",
      "http-engine",
      "proxy",
      "rest-client",
      "docs-page",
      "auth",
      "telemetry",
      "frameworks",
      "grpc-handlers",
    ].map((name) => [name, `protoport/${name}/src`]),
  ),
};

/** Returns all source files without generated ones, such as `serve/serve.ts`. */
export function allSourceFiles(): string[] {
  return Object.entries(sourceFolders).flatMap(([name, folder]) =>
    sourceFiles(join(projectFolder, folder)).map((file) => `${name}/${file}`),
  );
}

/** Returns the path to a file in {@link allSourceFiles}. */
export function sourcePath(file: string): string {
  const [name = "", ...rest] = file.split("/");
  return join(projectFolder, sourceFolders[name] ?? name, ...rest);
}
