import { globSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writePageScript } from "../../docs-page/src/page-script.ts";
import { buildPackage, type PackageOptions } from "./build-package.ts";
import { projectFolder, protoportPackages } from "./manifest.ts";

// Builds a folder in dist/ for each of Protoport's packages. The checkout's package.json files name source files, so that
// the checkout runs without a build. conformance.ts builds dist/conformance.

/** The packages' build options, by their folders in dist/. */
const packageOptions: Readonly<Record<string, PackageOptions>> = {
  gateway: {
    hasSharedChunks: true,
    hasSourceMaps: true,
    files: { "protoport/gateway/proto/google": "proto/google" },
  },
  auth: { files: { "protoport/auth/proto": "proto" } },
  "docs-page": {
    unexported: ["files"],
    files: {
      "protoport/docs-page/src/files": "lib/files",
      // The CommonMark parser is part of the page's script.
      "node_modules/marked/LICENSE": "lib/files/LICENSE-marked",
    },
  },
};

for (const name of protoportPackages) {
  if (name !== "conformance") await buildPackage(name, `protoport/${name}`, packageOptions[name]);
}

// Bundles the docs page's scripts into a single script for browsers.
const pageFiles = join(projectFolder, "dist/docs-page/lib/files");
for (const file of globSync(join(pageFiles, "*.ts"))) rmSync(file);
writeFileSync(join(pageFiles, "page.js"), writePageScript());
