import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { pageBlocks } from "../docs/page-blocks.ts";

/**
 * Generates `gen/greet_pb` in a folder, which the READMEs of the packages import, from the definition in the README of
 * the gateway.
 */
export function generateGreetCode(folder: string, target: "js" | "ts"): void {
  const definition = pageBlocks.find(
    ({ page, language }) => page === "packages/gateway/README.md" && language === "proto",
  );
  mkdirSync(join(folder, "proto"), { recursive: true });
  writeFileSync(join(folder, "proto/greet.proto"), definition?.text ?? "");
  cpSync(join(projectFolder, "packages/gateway/proto/google"), join(folder, "imports/google"), { recursive: true });
  const plugin = {
    local: "protoc-gen-es",
    out: "gen",
    opt: [`target=${target}`, "import_extension=js"],
    include_imports: true,
  };
  const configuration = { modules: [{ path: "proto" }, { path: "imports" }] };
  const template = { inputs: [{ directory: ".", paths: ["proto/greet.proto"] }], plugins: [plugin] };
  writeFileSync(join(folder, "buf.yaml"), JSON.stringify({ version: "v2", ...configuration }));
  writeFileSync(join(folder, "buf.gen.yaml"), JSON.stringify({ version: "v2", ...template }));
  execFileSync("buf", ["generate"], { cwd: folder });
}
