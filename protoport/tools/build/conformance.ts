import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder, publishedMembers, readManifest } from "./manifest.ts";

// Completes dist/conformance. tsc has compiled the runner to this folder (protoport/conformance/tsconfig.build.json),
// because node does not strip types in node_modules. The servers and the cases' generators are not published.

const folder = "protoport/conformance";
const built = join(projectFolder, "dist/conformance");

const copies = {
  [`${folder}/cases`]: "cases",
  [`${folder}/proto`]: "proto",
  [`${folder}/README.md`]: "README.md",
  // The contract's imports, apart from protobuf's well-known types.
  "protoport/gateway/proto/google/api/annotations.proto": "proto/google/api/annotations.proto",
  "protoport/gateway/proto/google/api/http.proto": "proto/google/api/http.proto",
  "protoport/gateway/proto/google/api/httpbody.proto": "proto/google/api/httpbody.proto",
  LICENSE: "LICENSE",
};
for (const [from, to] of Object.entries(copies)) {
  cpSync(join(projectFolder, from), join(built, to), { recursive: true });
}

const manifest = readManifest(join(projectFolder, folder, "package.json"));
const published = {
  ...publishedMembers(manifest, folder),
  bin: { "transcoding-conformance": "runner/main.js" },
  exports: { ...manifest.exports, ".": { types: "./runner/index.d.ts", default: "./runner/index.js" } },
};
writeFileSync(join(built, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
