import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync, type Options } from "@grpc/proto-loader";
import { projectFolder } from "../../testing/src/process/child-program.ts";

export type Files = Readonly<Record<string, string>>;

/** The files that files may import, in addition to the files of the gateway. */
const importable: Files = {
  "google/api/visibility.proto": `package google.api; import "google/protobuf/descriptor.proto";
    extend google.protobuf.EnumOptions { VisibilityRule enum_visibility = 72295727; }
    extend google.protobuf.EnumValueOptions { VisibilityRule value_visibility = 72295727; }
    extend google.protobuf.FieldOptions { VisibilityRule field_visibility = 72295727; }
    extend google.protobuf.MessageOptions { VisibilityRule message_visibility = 72295727; }
    extend google.protobuf.MethodOptions { VisibilityRule method_visibility = 72295727; }
    extend google.protobuf.ServiceOptions { VisibilityRule api_visibility = 72295727; }
    message VisibilityRule { string selector = 1; string restriction = 2; }`,
};

/** Writes files to a folder for a callback. The files are proto3 unless they start with `syntax` or `edition`. */
function withFolder<Result>(files: Files, use: (folder: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), "loaded-"));
  try {
    for (const path of ["gateway/proto/google", "auth/proto/protoport", "testing/proto/buf"])
      cpSync(join(projectFolder, "protoport", path), join(folder, basename(path)), { recursive: true });
    for (const [name, text] of Object.entries({ ...importable, ...files })) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), /^(syntax|edition)/.test(text) ? text : `syntax = "proto3"; ${text}`);
    }
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the definition of the file `name`, as proto-loader reads it. */
export const loadFiles = (files: Files, name: string, options: Options = {}): Readonly<Record<string, object>> =>
  withFolder(files, (folder) => loadSync(name, { includeDirs: [folder], ...options }));

/** Returns a service of the file `name`, as proto-loader reads it. */
export function loadService(files: Files, name: string, typeName: string): ServiceDefinition {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
  return loadFiles(files, name)[typeName] as ServiceDefinition;
}

/** Returns the descriptor set of files and their imports, as `buf build` writes it. */
export function buildSet(files: Files): Buffer {
  const buf = join(projectFolder, "node_modules/.bin/buf");
  return withFolder(files, (folder) => execFileSync(buf, ["build", folder, "--output", "-"]));
}
