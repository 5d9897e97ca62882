import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as connect from "../../../src/client/connect.ts";
import * as client from "../../../src/client/index.ts";
import * as server from "../../../src/index.ts";
import { protoportPackages, readPackage } from "../../../protoport/tools/build/manifest.ts";
import { createUserProject, type UserProject } from "../../../protoport/test/support/package/user-project.ts";
import { packedHouses } from "../../support/package/packed-houses.ts";

// The packages as npm would publish them, installed by npm in an empty project from the tarballs and the registry.

let user: UserProject;

beforeAll(() => {
  user = createUserProject();
  const own = Object.values(packedHouses());
  user.run("npm", "install", "--no-audit", "--no-fund", ...own, "@grpc/grpc-js@1.14.7", "@opentelemetry/api@1.10.0");
});
afterAll(() => rmSync(user.path, { recursive: true }));

/** Imports a subpath in a separate process, and returns the names that it exports. */
function exportsOf(subpath: string): string[] {
  const names = `Object.keys(await import(${JSON.stringify(subpath)}))`;
  return JSON.parse(user.runProgram(`console.log(JSON.stringify(${names}))`));
}

const texts = ["package.json", "README.md", "LICENSE"];
const everywhere = [...texts, "lib/index.js", "lib/index.d.ts"];

describe.each(
  // oxfmt-ignore
  [
    ["@protoport/gateway",
      [...everywhere, "lib/health/index.js", "lib/health/index.d.ts", "lib/engine/http2-client.js",
        "lib/engine/http2-client.d.ts", "proto/google/api/annotations.proto", "proto/google/api/field_behavior.proto",
        "proto/google/api/http.proto", "proto/google/api/httpbody.proto"]],
    ["@protoport/docs-page", [...everywhere, "lib/files/page.html", "lib/files/page.js", "lib/files/LICENSE-marked"]],
    ["@protoport/command-line", [...everywhere, "lib/settings/index.js", "lib/settings/index.d.ts"]],
    ["@protoport/rest-client", everywhere],
    ["@protoport/auth", [...everywhere, "lib/inputs/index.js", "lib/inputs/index.d.ts"]],
    ["@protoport/telemetry", [...texts, "lib/logs/index.js", "lib/logs/index.d.ts"]],
    ["@protoport/frameworks",
      [...texts, "lib/express.js", "lib/express.d.ts", "lib/fastify.js", "lib/fastify.d.ts", "lib/nestjs.js",
        "lib/nestjs.d.ts"]],
    ["@protoport/grpc-handlers",
      ["grpc-js", "nestjs", "nice-grpc"].flatMap((name) => [`lib/${name}.js`, `lib/${name}.d.ts`]).concat(texts)],
    ["@protoport/proxy", [...texts, "lib/create-proxy.js", "lib/create-proxy.d.ts", "node/command/main.js"]],
    ["plantstore",
      [...everywhere, "lib/stores/sqlite/worker.js", "bin/NOTICE", "bin/LICENSE-Apache-2.0", "man/plantstore.1",
        "openapi.json", "proto/plantstore/v1/plant_service.proto", "proto/google/api/annotations.proto",
        "proto/google/api/httpbody.proto"]],
  ],
)("the package %s", (name, has) => {
  test.each(has)("contains %s in its installed folder", (file) => {
    expect(existsSync(join(user.path, "node_modules", name, file))).toBe(true);
  });

  const folders = ["src", "test", "bench", "node_modules", "tools"];
  test.each(folders)("does not contain %s in its installed folder", (folder) => {
    expect(existsSync(join(user.path, "node_modules", name, folder))).toBe(false);
  });

  test("contains no scripts and no development tools", () => {
    const manifest = user.run("cat", join("node_modules", name, "package.json"));
    expect(Object.keys(JSON.parse(manifest))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/scripts|devDependencies|workspaces|private|allowScripts/)]),
    );
    expect(manifest).not.toMatch(/\.\/src\/|(?<!\.d)\.ts"/);
  });

  test("depends on the other packages with the same version", () => {
    const manifest = JSON.parse(user.run("cat", join("node_modules", name, "package.json")));
    const others = Object.entries(manifest.dependencies).filter(([other]) => other.startsWith("@protoport/"));
    expect(others).toEqual(others.map(([other]) => [other, manifest.version]));
  });
});

const bundled = ["@bufbuild/protobuf", "@connectrpc/connect", "jose", "pino", "sonic-boom"];
test.each(bundled)("the command's notice lists the bundled %s with version and licence", (name) => {
  const notice = readFileSync(join(user.path, "node_modules/plantstore/bin/NOTICE"), "utf8");
  const manifest: Record<"version" | "license", string> = JSON.parse(
    readFileSync(join("node_modules", name, "package.json"), "utf8"),
  );
  expect(notice.split("\n")).toContain(`${name} ${manifest.version}, ${manifest.license}`);
});

test("the systemd unit starts a file from the package", () => {
  const unit = readFileSync("deploy/systemd/plantstore.service", "utf8");
  const [, file = "none"] = /^ExecStart=.*\/(node_modules\/\S+) serve$/m.exec(unit) ?? [];
  expect(existsSync(join(user.path, file))).toBe(true);
});

// In the checkout, the names of Protoport's packages lead to their sources.
test.each(
  protoportPackages
    .filter((name) => name !== "conformance")
    .flatMap((name) => Object.keys(readPackage(name).exports).map((subpath) => `@protoport/${name}${subpath.slice(1)}`))
    .filter((name) => !/\/gen\/|\.json$|frameworks|grpc-handlers/.test(name)),
)("%s has the same exports as its source", async (name) => {
  expect(exportsOf(name).toSorted()).toEqual(Object.keys(await import(name)).toSorted());
});

test.each([
  { subpath: "plantstore", source: server },
  { subpath: "plantstore/client", source: client },
  { subpath: "plantstore/connect", source: connect },
])("$subpath has the same exports as its source", ({ subpath, source }) => {
  expect(exportsOf(subpath).toSorted()).toEqual(Object.keys(source).toSorted());
});

test("the gateway's Fetch entry imports no Node modules", () => {
  const files = new Set([join(user.path, "node_modules/@protoport/gateway/lib/fetch/entry.js")]);
  for (const file of files) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/^(?:import|export) [^;]*?"([^"]+)";/gm)) {
      if (name.startsWith(".")) files.add(join(dirname(file), name));
      else expect(name, file).toMatch(/^@(connectrpc\/connect|bufbuild\/protobuf)/);
    }
  }
  expect(files.size).toBeGreaterThan(1);
});

/** Returns the source files whose code is in the published packages, except in programs. */
const publishedModules = (): string[] =>
  [...protoportPackages.filter((name) => name !== "conformance"), "plantstore"].flatMap((name) => {
    const isPlantStore = name === "plantstore";
    const folder = isPlantStore ? "." : `protoport/${name}`;
    const lib = join(user.path, "node_modules", isPlantStore ? name : `@protoport/${name}`, "lib");
    return readdirSync(lib, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js"))
      .flatMap((file) => [...readFileSync(join(lib, file), "utf8").matchAll(/^\/\/ (\S+\.ts)$/gm)])
      .map(([, module = ""]) => join(folder, module));
  });

test("no module is in two published packages", () => {
  const modules = publishedModules();
  const some = ["protoport/gateway/src/http/exchange/exchange.ts", "protoport/gateway/src/serve/serve.ts"];
  expect(modules).toEqual(expect.arrayContaining([...some, "src/stores/contract/backend.ts"]));
  expect(modules.filter((module, at) => modules.indexOf(module) !== at)).toEqual([]);
});

test("the gateway's entry for exchanges imports no RPC code", () => {
  const files = new Set([join(user.path, "node_modules/@protoport/gateway/lib/exchange.js")]);
  for (const file of files) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/^(?:import|export) [^;]*?"([^"]+)";/gm)) {
      if (name.startsWith(".")) files.add(join(dirname(file), name));
      else expect(name, file).toMatch(/^node:/);
    }
  }
  expect(files.size).toBeGreaterThan(1);
});

test("the gateway's main entry imports no optional entry", () => {
  const files = new Set([join(user.path, "node_modules/@protoport/gateway/lib/index.js")]);
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    // Comments may name modules that are not loaded.
    expect(text.replaceAll(/\/\*.*?\*\//gs, ""), file).not.toMatch(
      /(?:checkCommand|McpServer|create(?:DocsPage|HealthService|MetricsEndpoint|Proxy|ReflectionService|Tracing))\b/,
    );
    for (const [, name = ""] of text.matchAll(/^(?:import|export) [^;]*?"(\.[^"]+)";/gm))
      files.add(join(dirname(file), name));
  }
  expect(files.size).toBeGreaterThan(1);
});

test("the manifest lists the man page in an array, as npm requires", () => {
  const manifest = user.run("cat", "node_modules/plantstore/package.json");
  expect(JSON.parse(manifest)).toMatchObject({ man: ["./man/plantstore.1"] });
});

test("npx runs the command by its name", () =>
  expect(user.run("npx", "plantstore", "--version")).toMatch(/^\d+\.\d+\.\d+\n$/));

test.each(["serve", "check"])("%s prints what to install when OpenTelemetry's configured SDK is missing", (command) => {
  const variables = ["OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "DATABASE_URL=memory:", "PORT=0"];
  const output = user.run("sh", "-c", `env ${variables.join(" ")} npx plantstore ${command} 2>&1; echo $?`);
  expect(output).toContain('run "npm install @opentelemetry/api @opentelemetry/sdk-node"\n');
  expect(output).toMatch(/ is not installed in \/(?:(?!node_modules).)+\/node_modules; run /);
  expect(output).toMatch(/\n78\n$/);
});

test("the packaged server deletes in a storage thread, and serves /docs", () => {
  const program = `
    import { createPlantServer, openSqliteStore, openTokenVerifier, parsePlainTokens } from "plantstore";
    const tokens = parsePlainTokens("token-of-the-package-test");
    const auth = await openTokenVerifier({ tokens: tokens.value });
    const store = await openSqliteStore({ file: "plants.db", plantsWhenCreated: { first: 1n, last: 3n } });
    const server = createPlantServer({ store, verifier: auth.value, docs: "open" });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const headers = { authorization: "Bearer token-of-the-package-test" };
    const answer = await fetch("http://127.0.0.1:" + port + "/plants/2", { method: "DELETE", headers });
    const page = await fetch("http://127.0.0.1:" + port + "/");
    console.log(answer.status, page.status, page.url.endsWith("/docs"));
    await server.close();
    await store.close();
  `;
  expect(user.runProgram(program)).toBe("204 200 true\n");
});

describe("the tarball", () => {
  let tools: UserProject;

  // npx would query the registry for each package, and the tools would pack a folder again.
  beforeAll(() => {
    tools = createUserProject();
    tools.run("npm", "install", "--no-audit", "--no-fund", "publint@0.3.25", "@arethetypeswrong/cli@0.18.5");
  });
  afterAll(() => rmSync(tools.path, { recursive: true }));

  test.each(Object.entries(packedHouses()))("of %s has no problems in publint and attw", (_name, tarball) => {
    expect(tools.run("node_modules/.bin/publint", "--strict", tarball)).toContain("All good!");
    // The tools exit with another code when they find a problem.
    tools.run("node_modules/.bin/attw", tarball);
  });
});
