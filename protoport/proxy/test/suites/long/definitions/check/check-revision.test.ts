import { chmodSync, cpSync, mkdirSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTempFolder, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";

// npx @protoport/proxy check SET --against REVISION, in a repository with the buf.yaml from protoport/docs/how-to/gateway.md

const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
const packageProto = "node_modules/@protoport/gateway/proto";

const bufYaml = `version: v2
modules:
  - path: proto
  - path: ${packageProto}
    lint:
      ignore: [${packageProto}]
`;

const visibility = `syntax = "proto3";
package google.api;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { VisibilityRule field_visibility = 72295727; }
message VisibilityRule { string restriction = 2; }
`;

const definition = (field: string): string => `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
import "google/api/visibility.proto";
service Shop { rpc Get(Item) returns (Item) { option (google.api.http) = {get: "/${field}"}; } }
message Item { string ${field} = ${field.length} [(google.api.field_visibility).restriction = "INTERNAL"]; }
`;

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

// The inner folder is a package with its own buf.yaml and node_modules. buf treats "#" in an input's path as the start
// of options.
const outer = folder.file("shop #1");
const inner = join(outer, "services/shop");
const temporary = folder.file("temporary");
const PATH = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
const git = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
const environment = { PATH, TMPDIR: temporary, ...git };
const run = async (at: string, program: string, ...args: readonly string[]): Promise<ProgramResult> =>
  await runProgram(program, args, { folder: at, environment });

async function check(at: string, revision: string, ...flags: readonly string[]): Promise<ProgramResult> {
  return await run(at, process.execPath, main, "check", "now.binpb", "--against", revision, ...flags);
}

async function commit(): Promise<void> {
  await run(outer, "git", "add", ".");
  const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  expect(await run(outer, "git", ...author, "commit", "-qm", "One")).toMatchObject({ exitCode: 0 });
}

beforeAll(async () => {
  mkdirSync(temporary);
  mkdirSync(outer);
  await run(outer, "git", "init", "-q");
  folder.write("shop #1/.gitignore", "node_modules\nnow.binpb\n");
  await commit();
  for (const at of ["shop #1", "shop #1/services/shop"]) {
    mkdirSync(folder.file(`${at}/proto/google/api`), { recursive: true });
    folder.write(`${at}/proto/google/api/visibility.proto`, visibility);
    cpSync(join(projectFolder, "protoport/gateway/proto"), folder.file(`${at}/${packageProto}`), { recursive: true });
    folder.write(`${at}/buf.yaml`, bufYaml);
    folder.write(`${at}/proto/shop.proto`, definition("id"));
  }
  await commit();
  for (const at of ["shop #1", "shop #1/services/shop"]) {
    folder.write(`${at}/proto/shop.proto`, definition("key"));
    expect(await run(folder.file(at), "buf", "build", "-o", "now.binpb")).toMatchObject({ exitCode: 0, stderr: "" });
  }
}, 60_000);

describe("a git revision for --against", () => {
  test.for([
    { name: "of the root folder", at: outer },
    { name: "of a subfolder", at: inner },
  ])("$name is compiled with the packages in the current node_modules", async ({ at }) => {
    const { exitCode, stdout, stderr } = await check(at, "HEAD");
    expect([exitCode, stderr]).toEqual([1, ""]);
    expect(stdout).toContain("shop.proto:5: error: route-removed shop.v1.Shop.Get GET /id\n");
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("has no restricted fields with --visibility", async () => {
    const { stdout } = await check(outer, "HEAD", "--visibility", "PARTNER");
    expect(stdout).toMatch(/\n1 change breaks clients, 0 may; 0 accepted\.\n\n.*route-removed/);
  });

  test("changes neither the index nor the files of the repository", async () => {
    const status = async (): Promise<ProgramResult> => await run(outer, "git", "status", "--porcelain", "--ignored");
    const before = await status();
    await check(inner, "HEAD");
    expect(await status()).toEqual(before);
    expect(readdirSync(join(inner, packageProto))).toContain("google");
  });

  test("is refused if the current folder does not exist in it", async () => {
    const stderr = "cannot build the definition of HEAD~1 with buf: it has no folder services/shop\n";
    expect(await check(inner, "HEAD~1")).toEqual({ exitCode: 2, stdout: "", stderr });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test.for(["SIGINT", "SIGTERM", "SIGHUP"])("leaves no temporary files when %s ends the command", async (signal) => {
    const programs = folder.file(signal);
    mkdirSync(programs);
    chmodSync(folder.write(`${signal}/buf`, `#!/bin/sh\nkill -${signal.slice(3)} $PPID\nexec sleep 60\n`), 0o755);
    const path = [programs, environment.PATH].join(delimiter);
    const args = [main, "check", "now.binpb", "--against", "HEAD"];
    const options = { folder: outer, environment: { ...environment, PATH: path } };
    expect(await runProgram(process.execPath, args, options)).toEqual({ exitCode: null, stdout: "", stderr: "" });
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("is refused if buf is not installed", async () => {
    const path = dirname((await run(outer, "which", "git")).stdout);
    const args = [main, "check", "now.binpb", "--against", "HEAD"];
    const options = { folder: outer, environment: { ...environment, PATH: path } };
    const stderr = 'cannot build the definition of HEAD with buf: the program "buf" is not installed\n';
    expect(await runProgram(process.execPath, args, options)).toMatchObject({ exitCode: 2, stderr });
  });

  test("is refused with buf's error if its definition does not compile", async () => {
    folder.write("shop #1/proto/shop.proto", "no");
    await commit();
    const { exitCode, stderr } = await check(outer, "HEAD");
    const compiled = /^cannot build the definition of HEAD with buf: .*shop\.proto:1:1:/;
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(compiled)]);
  });
});
