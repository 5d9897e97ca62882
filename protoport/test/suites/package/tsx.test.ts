import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { greeterModule } from "../../support/package/greeter.ts";
import { createUserProject, packed } from "../../support/package/user-project.ts";

// Programs that run on tsx, which converts all required modules to CommonJS.

const project = createUserProject({});
afterAll(() => rmSync(project.path, { recursive: true }));

beforeAll(() => {
  const gateway = packed()["@protoport/gateway"];
  const others = ["@bufbuild/protobuf@2.17.0", "@connectrpc/connect@2.2.0", "tsx@4.23.15"];
  project.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", gateway, ...others);
  const program = `
    import { Health, createHealthService } from "@protoport/gateway/health";
    import { createGateway } from "@protoport/gateway";
    import { Greeter } from "./greeter";
    const routes = (router: any) => router.service(Greeter, { greet: (greeting: object) => greeting });
    createGateway({ routes });
    console.log(typeof createHealthService, typeof Health);
  `;
  for (const type of ["module", "commonjs"]) {
    mkdirSync(join(project.path, type));
    project.write(`${type}/package.json`, JSON.stringify({ type }));
    project.write(`${type}/greeter.ts`, greeterModule);
    project.write(`${type}/program.ts`, program);
  }
});

test.each(["module", "commonjs"])("in a package with type %s, tsx runs a gateway program", (type) => {
  expect(project.tryToRun("npx", "tsx", `${type}/program.ts`)).toContain("function object\n");
});
