import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder, publishedAddresses, readManifest } from "./manifest.ts";

// Completes dist/conformance as npm publishes it, where tsc has put the runner (packages/conformance/tsconfig.build.json): node
// strips no types in node_modules. The servers of its table and what writes its cases stay in the checkout.

const source = join(projectFolder, "conformance");
const built = join(projectFolder, "dist/conformance");

const copies = {
  "packages/conformance/cases": "cases",
  "packages/conformance/proto": "proto",
  "packages/conformance/README.md": "README.md",
  // What the contract imports beside the types of protobuf itself.
  "packages/gateway/proto/google/api/annotations.proto": "packages/gateway/proto/google/api/annotations.proto",
  "packages/gateway/proto/google/api/http.proto": "packages/gateway/proto/google/api/http.proto",
  "packages/gateway/proto/google/api/httpbody.proto": "packages/gateway/proto/google/api/httpbody.proto",
  LICENSE: "LICENSE",
};
for (const [from, to] of Object.entries(copies)) {
  cpSync(join(projectFolder, from), join(built, to), { recursive: true });
}

const manifest = readManifest(join(source, "package.json"));
const published = {
  ...Object.fromEntries(Object.entries(manifest).filter(([member]) => member !== "private")),
  ...publishedAddresses(readManifest(join(projectFolder, "package.json")).repository, "conformance"),
  bin: { "transcoding-conformance": "runner/main.js" },
  exports: { ...manifest.exports, ".": { types: "./runner/index.d.ts", default: "./runner/index.js" } },
};
writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
