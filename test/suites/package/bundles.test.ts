import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../protoport/testing/src/gateway/descriptor-set.ts";
import { startNode } from "@protoport/testing/process";
import { greeterModule } from "../../../protoport/test/support/package/greeter.ts";
import { readPage } from "../../../protoport/test/support/docs/page-blocks.ts";
import { createUserProject, type UserProject } from "../../../protoport/test/support/package/user-project.ts";
import { packedHouses } from "../../support/package/packed-houses.ts";
import { webEntries } from "../../../protoport/test/support/package/web-entries.ts";

// Programs that esbuild bundles for browsers and workers, and for Node in CommonJS.

let user: UserProject;

beforeAll(() => {
  user = createUserProject();
  const peers = ["@bufbuild/protovalidate@1", "@opentelemetry/api@1.10.0", "esbuild@0.28.2"];
  user.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", ...Object.values(packedHouses()), ...peers);
});
afterAll(() => rmSync(user.path, { recursive: true }));

const bundle = (file: string, ...options: readonly string[]): string =>
  user.tryToRun("npx", "esbuild", file, "--bundle", "--log-level=error", "--outdir=out", ...options);

const commonJsOptions = ["--platform=node", "--format=cjs", "--out-extension:.js=.cjs"];

test.each([...webEntries, "plantstore/connect"])("%s can be bundled for browsers", (entry) => {
  user.write("web.js", `export * from ${JSON.stringify(entry)};`);
  expect(bundle("web.js", "--platform=browser", "--format=esm")).toBe("");
});

test("a browser bundle of the REST client contains neither the engine nor the server", () => {
  user.write("rest.js", 'export { createRestTransport } from "@protoport/rest-client";');
  expect(bundle("rest.js", "--platform=browser", "--format=esm")).toBe("");
  const text = readFileSync(join(user.path, "out/rest.js"), "utf8");
  expect(text).toContain("createRestTransport");
  const serving = /\b(?:Http1Connection|Http2Connection|Call|ServedRequest|HandlerCallee)\d* = class\b|new Function/;
  expect(text).not.toMatch(serving);
  // The same names are in a bundle of the gateway.
  user.write("serve.js", 'export { createGateway } from "@protoport/gateway";');
  expect(bundle("serve.js", "--platform=node", "--format=esm")).toBe("");
  expect(readFileSync(join(user.path, "out/serve.js"), "utf8")).toMatch(serving);
});

test("protoport/docs/how-to/packages.md lists exactly the entries for browsers", () => {
  const [, section = ""] =
    /## Browsers, workers and bundles\n([^]*?)\n\nA program/.exec(readPage("protoport/docs/how-to/packages.md")) ?? [];
  const listed = [...section.matchAll(/`((?:@protoport)?\/[^`]+)`/g)].map(([, name = ""]) => name);
  const entries = listed
    .filter((name) => name !== "@protoport/gateway")
    .map((name) => (name.startsWith("/") ? `@protoport/gateway${name}` : name));
  expect(entries.toSorted()).toEqual(webEntries);
});

test("a CommonJS bundle with the proxy reads its settings and serves RPCs", async () => {
  const main = "node_modules/@protoport/proxy/node/command/main.js";
  expect(bundle(main, ...commonJsOptions)).toBe("");
  const files = join(user.path, "node_modules/@protoport/docs-page/lib/files");
  cpSync(files, join(user.path, "out/files"), { recursive: true });
  writeFileSync(join(user.path, "greenhouse.binpb"), descriptorSetOf(GreenhouseService.file));
  user.write(
    "proxy.yaml",
    `listen: { host: 127.0.0.1, port: 0 }
upstreams:
  - addresses: ["http://127.0.0.1:1"]
    descriptors: greenhouse.binpb
`,
  );
  await using running = startNode(["out/main.cjs", "--config", "proxy.yaml"], user.path);
  const [url] = await running.find(/http:\S+/);
  expect((await fetch(`${url}/sensors/palm/reading`)).status).toBe(503);
  expect(await (await fetch(`${url}/docs`)).text()).toContain("<!doctype html>");
});

test("a CommonJS bundle logs, and serves a service outside the bundle", () => {
  const commonJs = greeterModule
    .replaceAll(/import (\{.*?\}) from (".*?");/g, "const $1 = require($2);")
    .replace("export const Greeter", "exports.Greeter");
  user.write("out/greeter.cjs", commonJs);
  user.write(
    "program.js",
    `
    import { createGateway } from "@protoport/gateway";
    import { openLog } from "@protoport/telemetry/logs";
    import { Greeter } from "./greeter.cjs";
    const gateway = createGateway({ routes: (router) => router.service(Greeter, {}) });
    openLog("info", process.stdout).info(gateway.routes[0].path);
  `,
  );
  expect(bundle("program.js", ...commonJsOptions, "--external:./greeter.cjs")).toBe("");
  expect(user.run(process.execPath, "out/program.cjs")).toContain('"msg":"/greet.Greeter/Greet"');
});

test("a CommonJS bundle opens an SQLite store with a package outside it", () => {
  user.write(
    "store.js",
    `
    import { openSqliteStore } from "plantstore";
    openSqliteStore({ file: "plants.db", plantsWhenCreated: { first: 1n, last: 3n } }).then(async (store) => {
      console.log("opened");
      await store.close();
    });
  `,
  );
  expect(bundle("store.js", ...commonJsOptions, "--external:plantstore")).toBe("");
  expect(user.run(process.execPath, "out/store.cjs")).toBe("opened\n");
});
