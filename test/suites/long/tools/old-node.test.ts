import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createTempFolder, projectFolder, runProgram } from "@protoport/testing/process";

// Node releases with known vulnerabilities in node:http2 work, with a warning.

const enginesOf = (manifest: string) => JSON.parse(readFileSync(join(projectFolder, manifest), "utf8")).engines.node;

/** Loads a package's built check on a process that claims these versions, and returns what it prints. */
async function load(name: string, versions: Readonly<Record<string, string>>): Promise<string> {
  using folder = createTempFolder();
  mkdirSync(folder.file("node"));
  const manifest = { name, engines: { node: enginesOf("protoport/gateway/package.json") }, peerDependencies: {} };
  writeFileSync(folder.file("package.json"), JSON.stringify(manifest));
  copyFileSync(join(projectFolder, "protoport/tools/build/requirements.cjs"), folder.file("node/requirements.cjs"));
  writeFileSync(
    folder.file("program.cjs"),
    `Object.defineProperty(process, "versions", { value: ${JSON.stringify(versions)} });
process.on("warning", ({ code, message }) => console.log(code, message));
require("./node/requirements.cjs");
require("./node/requirements.cjs");`,
  );
  const { stdout, stderr } = await runProgram(process.execPath, ["--no-warnings", folder.file("program.cjs")]);
  return stdout + stderr;
}

const warning = /^PROTOPORT_OLD_NODE node:http2 of Node [0-9.]+ has known vulnerabilities .*: use Node [^\n]*\n$/;
const releases = ["22.15.0", "22.23.1", "23.11.1", "24.18.0", "25.9.0", "26.5.0"];
test.each(releases)("Node %s prints one warning when it loads the gateway", async (node) => {
  expect(await load("@protoport/gateway", { node })).toMatch(warning);
});

test.each([
  ["the gateway", "Node 22.23.2", "@protoport/gateway", { node: "22.23.2" }],
  ["the gateway", "Node 24.18.1", "@protoport/gateway", { node: "24.18.1" }],
  ["the gateway", "Node 26.5.1", "@protoport/gateway", { node: "26.5.1" }],
  ["the gateway", "Node 27.0.0", "@protoport/gateway", { node: "27.0.0" }],
  ["the gateway", "Bun", "@protoport/gateway", { node: "24.3.0", bun: "1.4.5" }],
  ["the gateway", "Deno", "@protoport/gateway", { node: "24.3.0", deno: "2.9.6" }],
  ["a package that loads the gateway", "Node 22.15.0", "@protoport/auth", { node: "22.15.0" }],
])('%s does not warn on "%s"', async (_name, _runtime, loaded, versions) => {
  expect(await load(loaded, versions)).toBe("");
});

test.each(["20.20.2", "22.14.0", "23.7.0"])("Node %s cannot load a package", async (node) => {
  const sentence = `@protoport/proxy needs Node ^22.15 || >=23.8, and this is ${node}`;
  expect(await load("@protoport/proxy", { node })).toContain(`Error: ${sentence}\n`);
});

describe("the field engines", () => {
  const manifests = globSync("protoport/*/package.json", { cwd: projectFolder });

  test.each(manifests)("in %s excludes vulnerable node:http2 versions", (manifest) => {
    const libraries = enginesOf("protoport/gateway/package.json");
    expect([libraries, libraries.replace(/^\^22[^|]*\|\| /, "")]).toContain(enginesOf(manifest));
  });

  test("in the plant store has the gateway's versions except Node 22", () => {
    expect(enginesOf("package.json")).toBe("^24.18.1 || >=26.5.1");
    expect(enginesOf("protoport/gateway/package.json")).toBe("^22.23.2 || ^24.18.1 || >=26.5.1");
  });
});
