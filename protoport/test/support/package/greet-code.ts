import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createTempFolder, projectFolder } from "@protoport/testing";
import { pageBlocks } from "../docs/page-blocks.ts";

/** Writes `proto/greet.proto` from Protoport's README, and generates `gen/greet_pb.ts` as the tutorial does. */
export function generateGreetCode(folder: string): void {
  using project = createTempFolder();
  for (const { page, language, text } of pageBlocks) {
    const isDefinition = page === "protoport/README.md" && language === "proto";
    if (!isDefinition && !(page === "protoport/docs/tutorials/first-service.md" && language === "yaml")) continue;
    const name = /^(?:\/\/|#) (\S+)\n/.exec(text)?.[1] ?? "";
    mkdirSync(dirname(project.file(name)), { recursive: true });
    writeFileSync(project.file(name), text);
  }
  const imports = "protoport/gateway/proto/google";
  const installed = project.file("node_modules/@protoport/gateway/proto/google");
  cpSync(join(projectFolder, imports), installed, { recursive: true });
  execFileSync("buf", ["generate"], { cwd: project.path });
  for (const name of ["gen", "proto"]) cpSync(project.file(name), join(folder, name), { recursive: true });
}

/** Writes `gen/orders/v1/orders_pb.ts` to a folder in the project, with the service of some examples in docs. */
export function writeOrderCode(folder: string): void {
  mkdirSync(join(folder, "gen/orders/v1"), { recursive: true });
  const generated = join(projectFolder, "protoport/testing/src/gen/orders/v1/orders_pb.ts");
  writeFileSync(join(folder, "gen/orders/v1/orders_pb.ts"), `export * from ${JSON.stringify(generated)};\n`);
}
