import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { documentedSize } from "../../support/package/documented-size.ts";
import { createUserProject } from "../../support/package/user-project.ts";

const user = createUserProject();
afterAll(() => rmSync(user.path, { recursive: true }));

test("the transcoding suite has no dependencies, and contains its contract and cases", () => {
  const pack = ["pack", "--silent", "--pack-destination", user.path, join(projectFolder, "dist/conformance")];
  const tarball = execFileSync("npm", pack, { cwd: user.path, encoding: "utf8" }).trim();
  const documented = documentedSize("@protoport/conformance");
  expect(Math.abs(statSync(join(user.path, tarball)).size / documented - 1)).toBeLessThan(0.15);
  user.run("npm", "install", "--no-audit", "--no-fund", `./${tarball}`);
  const scope = join(user.path, "node_modules/@protoport");
  expect(readdirSync(join(user.path, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["@protoport"]);
  // oxfmt-ignore
  expect(readdirSync(join(scope, "conformance")).toSorted()).toEqual([
    "LICENSE", "README.md", "cases", "package.json", "proto", "runner",
  ]);
  expect(user.run("npx", "@protoport/conformance", "--list")).toContain("\nquery.none (must): no query\n");
  expect(
    user.runProgram(
      'const { readCases } = await import("@protoport/conformance"); console.log(readCases().length > 2000)',
    ),
  ).toContain("true");
});
