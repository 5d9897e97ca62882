import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildPackage, declarations } from "../../protoport/tools/build/build-package.ts";
import { projectFolder } from "../../protoport/tools/build/manifest.ts";

// Builds dist/plantstore, after Protoport's packages.

await buildPackage("plantstore", ".", {
  threads: ["src/stores/sqlite/worker.ts"],
  includedInCommands: [
    "@protoport/auth",
    "@protoport/command-line",
    "@protoport/docs-page",
    "@protoport/gateway",
    "@protoport/telemetry",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "jose",
    "pino",
  ],
  files: {
    "openapi.json": "openapi.json",
    man: "man",
    proto: "proto",
    "protoport/gateway/proto/google": "proto/google",
    "src/README.md": "README.md",
    "node_modules/@opentelemetry/api/LICENSE": "bin/LICENSE-Apache-2.0",
  },
});
cpSync(join(projectFolder, "dist/docs-page/lib/files"), join(projectFolder, "dist/plantstore/bin/docs-page/files"), {
  recursive: true,
});
rmSync(declarations, { recursive: true });
