import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import gatewayManifest from "../../../protoport/gateway/package.json" with { type: "json" };
import { projectFolder, startProgram } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { readPage } from "../../../protoport/test/support/docs/page-blocks.ts";
import { documentedSize } from "../../../protoport/test/support/package/documented-size.ts";
import { greeterModule, greeterRules } from "../../../protoport/test/support/package/greeter.ts";
// oxfmt-ignore
import { createUserProject, installedPackages, type UserProject
} from "../../../protoport/test/support/package/user-project.ts";
import { type HouseTarballs, packedHouses } from "../../support/package/packed-houses.ts";

// Installs the packages with each package manager. Checks their dependencies, and that the gateway serves.

/** The commands on the pages about the plant store and Protoport's packages. */
const ofPage = (page: string): string[] =>
  blocksRunBy("test/suites/package/install.test.ts").flatMap((block) =>
    block.page === page && block.language === "sh" ? [block.text] : [],
  );
const [forAll = "", onServer = ""] = ofPage("docs/how-to/install.md");
const [buildAndPack = "", inProject = ""] = ofPage("protoport/docs/how-to/packages.md");
const [forGateway = "", forProxy = ""] = inProject.split("\n");
const forServer = onServer.split("\n");
const peers = { "@bufbuild/protobuf": "2.17.0", "@connectrpc/connect": "2.3.0" } as const;
const folders: string[] = [];
let tarballs: HouseTarballs;
const dependencyOn = (name: keyof HouseTarballs): Record<string, string> => ({ [name]: `file:${tarballs[name]}` });

const ownPackages = (): Record<string, string> =>
  Object.fromEntries(Object.entries(tarballs).map(([name, tarball]) => [name, `file:${tarball}`]));

function createProject(dependencies: Readonly<Record<string, string>>): UserProject {
  const project = createUserProject(dependencies);
  folders.push(project.path);
  return project;
}

beforeAll(() => void (tarballs = packAsDocumented(createProject({}))));
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

// The first line's commands, `npm ci && npm run build`, ran before this test.
function packAsDocumented(project: UserProject): HouseTarballs {
  const [build = "", pack = ""] = buildAndPack.split("\n");
  expect(build).toBe("npm ci && npm run build");
  symlinkSync(join(projectFolder, "dist"), join(project.path, "dist"));
  project.run("bash", "-c", pack);
  return packedHouses(project.path);
}

const packageRows = (): string[] =>
  ["docs/how-to/install.md", "protoport/docs/how-to/packages.md"].flatMap((page) => readPage(page).split("\n"));

/** How each package manager installs packages, and tarballs that are not in a registry. */
// oxfmt-ignore
const managers: readonly { name: string; install: (project: UserProject, documented: string) => void }[] = [
  { name: "npm", install: (project, documented) => {
      for (const tarball of Object.values(tarballs)) copyFileSync(tarball, join(project.path, basename(tarball)));
      project.run("bash", "-c", documented);
    } },
  { name: "pnpm", install: (project) => {
      const overrides = Object.entries(tarballs).map(([name, tarball]) => `  "${name}": file:${tarball}\n`);
      project.write("pnpm-workspace.yaml", `overrides:\n${overrides.join("")}`);
      project.run("npx", "--yes", "pnpm@12.21.0", "install");
    } },
  { name: "yarn", install: (project) => {
      project.write(".yarnrc.yml", "nodeLinker: node-modules\nenableImmutableInstalls: false\n");
      project.write("yarn.lock", "");
      const manifest = JSON.parse(project.run("cat", "package.json"));
      const resolutions = ownPackages();
      project.write("package.json", JSON.stringify({ ...manifest, resolutions }));
      project.run("npx", "--yes", "@yarnpkg/cli-dist@4.18.1", "install");
    } },
];

const main = `
  import { createGateway, parseHttpRules } from "@protoport/gateway";
  import { Greeter } from "./greeter.mjs";
  const gateway = createGateway({
    routes: (router) => router.service(Greeter, { greet: ({ name }) => ({ name: "Hello " + name }) }),
    rest: { rules: parseHttpRules(${JSON.stringify(greeterRules)}) },
  });
  const { port } = await gateway.listen();
  const body = JSON.stringify({ name: "Connect" });
  const headers = { "content-type": "application/json" };
  const responses = [
    await fetch("http://127.0.0.1:" + port + "/greetings/REST"),
    await fetch("http://127.0.0.1:" + port + "/greet.Greeter/Greet", { method: "POST", headers, body }),
  ];
  for (const response of responses) console.log(await response.text());
  await gateway.close();
`;

const greetings = '{"name":"Hello REST"}\n{"name":"Hello Connect"}\n';

test.each(managers)("the gateway installed by $name has only its two peers, and serves", ({ install }) => {
  const project = createProject({ ...dependencyOn("@protoport/gateway"), ...peers });
  install(project, forGateway);
  const all = [...Object.keys(peers), "@protoport/gateway"].toSorted();
  expect([...new Set(installedPackages(project))].toSorted()).toEqual(all);
  project.write("greeter.mjs", greeterModule);
  expect(project.runProgram(main)).toBe(greetings);
});

test.each(managers)("the plant store installed by $name starts", ({ install }) => {
  const project = createProject({ ...ownPackages(), ...peers });
  install(project, forAll);
  expect(project.run("npx", "plantstore", "openapi")).toContain('"/plants/{id}"');
});

test("the documented operator commands install a plant store that serves", async () => {
  const project = createProject({});
  for (const tarball of Object.values(tarballs)) copyFileSync(tarball, join(project.path, basename(tarball)));
  project.write("bin/.keep", "");
  const here = (line: string): string => line.replace("PREFIX", join(project.path, "opt")).replace("BIN", "bin");
  for (const line of forServer) project.run("bash", "-c", here(line));
  const command = join(project.path, "bin/plantstore");
  const database = ["--database-url", "sqlite:plants.db"];
  project.write("ids.txt", "41\n42\n");
  project.run(command, "migrate", ...database);
  expect(project.run(command, "import", "ids.txt", ...database)).toMatch(/^2 added/);
  const token = project.run(command, "token", "create", "ci", "--file", "tokens").trim();
  const settings = ["--port", "0", "--token-hashes-file", "tokens", "--drain-delay-ms", "0", "--docs", "open"];
  await using server = startProgram(command, ["serve", ...settings, ...database], project.path, { HOME: project.path });
  const [, port = ""] = await server.find(/"port":(\d+)/);
  const headers = { authorization: `Bearer ${token}`, connection: "close" };
  expect((await fetch(`http://127.0.0.1:${port}/plants/42`, { method: "DELETE", headers })).status).toBe(204);
  expect((await fetch(`http://127.0.0.1:${port}/docs`, { headers: { connection: "close" } })).status).toBe(200);
  expect(await server.stop("SIGTERM")).toBe(0);
  expect(project.run(command, "export", ...database)).toBe("41\n");
  await using demo = startProgram(command, ["serve", "--demo", "--port", "0"], project.path, { HOME: project.path });
  // Outside a checkout, npx does not find buf.
  await demo.find(/^buf curl /m);
});

test("each package's tarball has the documented size", () => {
  for (const [name, tarball] of Object.entries(tarballs))
    expect(Math.abs(statSync(tarball).size / documentedSize(name, packageRows()) - 1), name).toBeLessThan(0.15);
});

test("each package has the documented dependencies", () => {
  for (const [name, tarball] of Object.entries(tarballs)) {
    const manifest = JSON.parse(execFileSync("tar", ["xzOf", tarball, "package/package.json"], { encoding: "utf8" }));
    const row = packageRows().find((line) => line.startsWith(`| \`${name}\` |`));
    const documented = row?.split(" | ").at(-2)?.replaceAll("`", "");
    const names = Object.keys(manifest.dependencies ?? {}).map((each) => each.replace("@protoport/", ""));
    expect(documented?.split(", ").toSorted(), name).toEqual(names.length === 0 ? ["–"] : names.toSorted());
  }
});

test("the proxy installed by npm prints its version", () => {
  const project = createProject({});
  for (const tarball of Object.values(tarballs)) copyFileSync(tarball, join(project.path, basename(tarball)));
  project.run("bash", "-c", forProxy);
  expect(project.run("npx", "@protoport/proxy", "--version")).toBe(`${gatewayManifest.version}\n`);
});

test("the plant store installs as many packages as documented", () => {
  const project = createProject({});
  for (const tarball of Object.values(tarballs)) copyFileSync(tarball, join(project.path, basename(tarball)));
  project.run("bash", "-c", forAll);
  const installed = installedPackages(project);
  const found = readPage("docs/how-to/install.md").replaceAll("\n", " ");
  expect(found).toContain(`is ${String(installed.length)} packages and`);
});

test("the gateway rejects a service from a second copy of protobuf-es", () => {
  const project = createProject(dependencyOn("@protoport/gateway"));
  project.write("service/package.json", '{"name":"service","type":"module"}');
  project.run("npm", "install", "--no-audit", "--no-fund");
  const service = join(project.path, "service");
  project.run("npm", "install", "--no-audit", "--no-fund", "--prefix", service, "@bufbuild/protobuf@2.13.0");
  project.write("service/greeter.mjs", greeterModule);
  project.write("program.mjs", main.replace("./greeter.mjs", "./service/greeter.mjs"));
  expect(project.tryToRun(process.execPath, "program.mjs")).toContain(
    "Error: service greet.Greeter was created by a different copy of @bufbuild/protobuf than the gateway uses; run " +
      '"npm ls @bufbuild/protobuf", and make every package use the same version\n',
  );
});

// Converts package.json's ^2.5.0 to 2.5.0. Excludes the optional peer, which needs a newer protobuf.
const oldestPeers = Object.entries(gatewayManifest.peerDependencies)
  .filter(([name]) => !(name in gatewayManifest.peerDependenciesMeta))
  .map(([name, range]) => ({ name, version: range.slice(1) }));

test("the gateway serves with the oldest supported peers", () => {
  const project = createProject(Object.fromEntries(oldestPeers.map(({ name, version }) => [name, version])));
  project.run("npm", "install", "--no-audit", "--no-fund", tarballs["@protoport/gateway"]);
  project.write("greeter.mjs", greeterModule);
  expect(project.runProgram(main)).toBe(greetings);
  project.run("npm", "install", "--no-audit", "--no-fund", ...Object.values(tarballs));
  expect(project.run("npx", "plantstore", "openapi")).toContain('"/plants/{id}"');
  const want = { dependencies: Object.fromEntries(oldestPeers.map(({ name, version }) => [name, { version }])) };
  expect(JSON.parse(project.run("npm", "ls", "--json"))).toMatchObject(want);
});

test("protoport/docs/how-to/packages.md documents the oldest supported peers", () => {
  const names = oldestPeers.map(({ name, version }) => `\`${name}\`, from ${version.replace(/\.0$/, "")}`);
  const found = readPage("protoport/docs/how-to/packages.md").replaceAll("\n", " ");
  expect(found).toContain(`have the peers ${names.join(", and ")}, which npm installs`);
});

const asCommonJs = (text: string): string =>
  text
    .replaceAll(/import (\{.*\}) from (".*")/g, "const $1 = require($2)")
    .replaceAll("mjs", "cjs")
    .replace("export const Greeter =", "exports.Greeter =");

test("a CommonJS program serves CommonJS descriptors with the gateway", () => {
  const project = createProject(dependencyOn("@protoport/gateway"));
  project.run("npm", "install", "--no-audit", "--no-fund");
  project.write("greeter.cjs", asCommonJs(greeterModule));
  project.write("program.cjs", `(async () => {${asCommonJs(main)}})();`);
  expect(project.run(process.execPath, "program.cjs")).toBe(greetings);
});
