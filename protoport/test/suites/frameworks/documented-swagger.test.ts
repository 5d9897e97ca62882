import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createTempFolder, projectFolder } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";

// Runs the block in protoport/docs/how-to/openapi.md that adds RPCs to @fastify/swagger's description.

const resolveFrom = (folder: string, name: string): string =>
  createRequire(join(projectFolder, folder, "package.json")).resolve(name);

const files: Readonly<Record<string, string>> = {
  fastify: resolveFrom("protoport/examples/frameworks", "fastify"),
  "@fastify/swagger": resolveFrom("protoport/frameworks/test/suites/frameworks/plugins", "@fastify/swagger"),
  "@protoport/gateway": join(projectFolder, "protoport/gateway/src/index.ts"),
  "@protoport/gateway/openapi": join(projectFolder, "protoport/gateway/src/openapi/entry.ts"),
  "@protoport/frameworks/fastify": join(projectFolder, "protoport/frameworks/src/fastify.ts"),
  greenhouse: join(projectFolder, "protoport/examples/servers/greenhouse.ts"),
  greenhouse_pb: join(projectFolder, "protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts"),
};

interface Description {
  readonly paths: Readonly<Record<string, object>>;
  readonly components: { readonly schemas: object };
}

/** Runs the block in an application with another route, and returns the description. */
function describeApplication(): Description {
  const [block] = blocksRunBy("protoport/test/suites/frameworks/documented-swagger.test.ts");
  const program = `
import { fastify } from "fastify";
import { routes } from "greenhouse";
import { GreenhouseService } from "greenhouse_pb";
const app = fastify();
${block?.text ?? ""}
app.register(async (child) => {
  const schema = { response: { 200: { type: "string" } } };
  child.get("/page", { schema }, () => "a page");
  // An RPC's path with another method.
  child.put("/sensors/:sensor/reading", { schema }, () => "moved");
});
await app.ready();
console.log(JSON.stringify(app.swagger()));`;
  const inCheckout = program.replaceAll(/from "([^"]+)"/g, (_, name: string) => {
    return `from ${JSON.stringify(pathToFileURL(files[name] ?? name).href)}`;
  });
  using folder = createTempFolder();
  writeFileSync(folder.file("program.mts"), inCheckout);
  return JSON.parse(execFileSync(process.execPath, [folder.file("program.mts")], { encoding: "utf8" }));
}

test("the documented transformObject describes the application's routes and the RPCs", () => {
  const { paths, components } = describeApplication();
  expect(Object.keys(paths).toSorted()).toEqual(["/beds/{bed}:water", "/page", "/sensors/{sensor}/reading"]);
  expect(Object.keys(paths["/sensors/{sensor}/reading"] ?? {}).toSorted()).toEqual(["get", "put"]);
  const references = JSON.stringify(paths).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g);
  const names = [...references].map(([, name = ""]) => name);
  expect(names).toContain("Reading");
  expect(names.filter((name) => !(name in components.schemas))).toEqual([]);
});
