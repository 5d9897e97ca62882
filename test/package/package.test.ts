import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as connect from "../../src/client/connect.ts";
import * as client from "../../src/client/index.ts";
import * as gateway from "../../src/gateway/index.ts";
import * as server from "../../src/index.ts";
import { projectFolder } from "../support/process/child-program.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

// The package as npm would publish it, unpacked where a user's node_modules would have it.

const user = createTempFolder();
const installed = join(user.path, "node_modules/plantstore");

/** What a user installs with the package, by what they use it for. */
const companions = {
  gateway: ["@connectrpc/connect", "@bufbuild/protobuf"],
  everything: ["@connectrpc/connect", "@bufbuild/protobuf", "@grpc/grpc-js", "pino", "jose"],
} as const;

function run(file: string, args: readonly string[], cwd: string): string {
  return execFileSync(file, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

function install(names: readonly string[]): void {
  for (const name of names) {
    const link = join(user.path, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    if (!existsSync(link)) symlinkSync(join(projectFolder, "node_modules", name), link);
  }
}

/** Imports a subpath of the package in a process of its own and returns the names that it exports. */
function exportsOf(subpath: string): string[] {
  const program = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(subpath)}))))`;
  return JSON.parse(run(process.execPath, ["--input-type=module", "--eval", program], user.path));
}

beforeAll(() => {
  mkdirSync(installed, { recursive: true });
  run("npm", ["pack", "--silent", "--pack-destination", user.path], projectFolder);
  const tarball = readdirSync(user.path).find((name) => name.endsWith(".tgz")) ?? "";
  run("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"], user.path);
}, 120_000);

afterAll(() => user[Symbol.dispose]());

test.each([
  "package.json",
  "README.md",
  "LICENSE",
  "dist/index.js",
  "dist/index.d.ts",
  "dist/plants/sqlite/worker.js",
  "dist/operations/docs-page/files/page.html",
  "openapi.json",
  "proto/plantstore/v1/plant_service.proto",
  "proto/google/api/annotations.proto",
  "proto/google/api/httpbody.proto",
])("the package has %s", (file) => {
  expect(existsSync(join(installed, file))).toBe(true);
});

test.each(["src", "test", "bench", "node_modules", "tools"])("the package leaves out %s", (folder) => {
  expect(existsSync(join(installed, folder))).toBe(false);
});

describe("with the peers of the gateway alone", () => {
  test("the gateway loads", () => {
    install(companions.gateway);
    expect(exportsOf("plantstore/gateway")).toContain("createGateway");
  });

  test("the server loads, and what only a log, JSON Web Tokens or PostgreSQL needs does not", () => {
    install(companions.gateway);
    expect(exportsOf("plantstore")).toContain("createPlantServer");
  });

  test("the gateway serves a service of its user, by RPC and by a rule of REST", () => {
    const program = `
      import { create, createFileRegistry } from "@bufbuild/protobuf";
      import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
      import { createGateway, parseHttpRules } from "plantstore/gateway";
      const file = create(FileDescriptorProtoSchema, {
        name: "greet.proto", package: "greet", syntax: "proto3",
        messageType: [{ name: "Greeting", field: [{ name: "name", number: 1, type: 9, label: 1, jsonName: "name" }] }],
        service: [{ name: "Greeter", method: [{ name: "Greet", inputType: ".greet.Greeting", outputType: ".greet.Greeting" }] }],
      });
      const Greeter = createFileRegistry(file, () => undefined).getService("greet.Greeter");
      const gateway = createGateway({
        routes: (router) => router.service(Greeter, { greet: ({ name }) => ({ name: "Hello " + name }) }),
        rest: { rules: parseHttpRules('{"rules":[{"selector":"greet.Greeter.Greet","get":"/greetings/{name}"}]}') },
      });
      const { port } = await gateway.listen();
      const body = JSON.stringify({ name: "Connect" });
      const headers = { "content-type": "application/json" };
      const answers = [
        await fetch("http://127.0.0.1:" + port + "/greetings/REST"),
        await fetch("http://127.0.0.1:" + port + "/greet.Greeter/Greet", { method: "POST", headers, body }),
      ];
      for (const answer of answers) console.log(await answer.text());
      await gateway.close();
    `;
    install(companions.gateway);
    writeFileSync(join(user.path, "greet.mjs"), program);
    expect(run(process.execPath, ["greet.mjs"], user.path)).toBe('{"name":"Hello REST"}\n{"name":"Hello Connect"}\n');
  });
});

describe("with every dependency", () => {
  test.each([
    { subpath: "plantstore", source: server },
    { subpath: "plantstore/gateway", source: gateway },
    { subpath: "plantstore/client", source: client },
    { subpath: "plantstore/connect", source: connect },
  ])("$subpath exports what its source does, and nothing else", ({ subpath, source }) => {
    install(companions.everything);
    expect(exportsOf(subpath).toSorted()).toEqual(Object.keys(source).toSorted());
  });

  test("a program in TypeScript knows the types of every subpath", () => {
    install([...companions.everything, "@types/node", "undici-types"]);
    const program = `
      import { createPlantServer, openMemoryStore } from "plantstore";
      import { createGateway } from "plantstore/gateway";
      import { createPlantClient } from "plantstore/client";
      import { PlantService } from "plantstore/connect";
      export const server: number = createPlantServer({ store: openMemoryStore() });
      export const gateway: number = createGateway({ routes: () => {} });
      export const client: number = createPlantClient({ address: "", token: "" });
      export const service: number = PlantService;
    `;
    writeFileSync(join(user.path, "types.ts"), program);
    const options = [
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2024",
      "--types",
      "node",
      "--skipLibCheck",
      "false",
    ];
    // Each line says that the type is known, since it is found not to be a number; and nothing else is wrong.
    const { stdout } = spawnSync("tsc", ["--noEmit", ...options, "types.ts"], { cwd: user.path, encoding: "utf8" });
    expect([...stdout.matchAll(/error (TS\d+): Type '(\w+)/g)].map(([, code, type]) => `${code} ${type}`)).toEqual([
      "TS2322 PlantServer",
      "TS2322 Gateway",
      "TS2322 PlantServiceClient",
      "TS2322 GenService",
    ]);
    expect(stdout.match(/error TS/g)).toHaveLength(4);
  });

  test("the command runs by its shebang", () => {
    const main = join(installed, "dist/cli/main.js");
    expect(run(process.execPath, [main, "--version"], user.path)).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(run("head", ["-1", main], user.path)).toBe("#!/usr/bin/env node\n");
  });

  test("a server of the package deletes a plant out of a file, in its storage thread, and shows its page", () => {
    const program = `
      import { createPlantServer, openSqliteStore, openTokenVerifier, parsePlainTokens } from "plantstore";
      const tokens = parsePlainTokens("token-of-the-package-test");
      const auth = await openTokenVerifier({ tokens: tokens.value });
      const store = await openSqliteStore({ file: "plants.db", plantsWhenCreated: { first: 1n, last: 3n } });
      const server = createPlantServer({ store, auth: auth.value, description: { open: true } });
      const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
      const headers = { authorization: "Bearer token-of-the-package-test" };
      const answer = await fetch("http://127.0.0.1:" + port + "/plants/2", { method: "DELETE", headers });
      const page = await fetch("http://127.0.0.1:" + port + "/");
      console.log(answer.status, page.status, page.url.endsWith("/docs"));
      await server.close();
      await store.close();
    `;
    install(companions.everything);
    writeFileSync(join(user.path, "embed.mjs"), program);
    expect(run(process.execPath, ["embed.mjs"], user.path)).toBe("204 200 true\n");
  });
});
