import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compilers } from "../../support/package/compilers.ts";
import { createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";

// Compiles the types of all subpaths with each version of TypeScript and each module resolution, with `skipLibCheck` off.

let user: UserProject;

const program = `
import { createPlantServer, openMemoryStore, type PlantServer } from "plantstore";
import { createGateway, type Gateway } from "@plantstore/gateway";
import { createBearerAuth } from "@plantstore/auth";
import { createPlantStub } from "plantstore/client";
import { PlantService } from "plantstore/connect";
export const server: PlantServer = createPlantServer({ store: openMemoryStore() });
export const gateway: Gateway = createGateway({ routes: () => {} });
export const admit: typeof createBearerAuth = createBearerAuth;
// @ts-expect-error: the member is known, and is not a number.
export const client: number = createPlantStub({ address: "", token: "" });
// @ts-expect-error: the member is known, and is not a number.
export const service: number = PlantService;
`;

const resolutions = {
  nodenext: ["--module", "nodenext"],
  bundler: ["--module", "esnext", "--moduleResolution", "bundler"],
} as const;

/** The module resolutions of projects in CommonJS; 7.0 no longer has them. */
const olderResolutions = {
  "node16 in CommonJS": ["--module", "node16"],
  node10: ["--module", "commonjs", "--moduleResolution", "node10"],
} as const;

beforeAll(() => {
  user = createUserProject();
  const own = Object.values(packed());
  const named = compilers.map((version) => `ts-${version}@npm:typescript@~${version}.0`);
  const types = ["@grpc/grpc-js@1.14.7", "@types/node@22"];
  user.run("npm", "install", "--no-audit", "--no-fund", ...own, ...types, ...named);
  user.write("types.ts", program);
});
afterAll(() => rmSync(user.path, { recursive: true }));

test.each([
  ...compilers.map((version) => ({ version, resolution: "nodenext" as const })),
  // The types are the same for all versions; their resolution is tested with the oldest version, the first one without
  // errors in the peers, and the newest.
  ...["5.4", "5.7", "7.0"].map((version) => ({ version, resolution: "bundler" as const })),
])("TypeScript $version compiles the types with the resolution $resolution", ({ version, resolution }) => {
  const compiler = `node_modules/ts-${version}/bin/tsc`;
  const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "node", "--skipLibCheck", "false"];
  const found = user.tryToRun(process.execPath, compiler, ...options, ...resolutions[resolution], "types.ts");
  const errors = found.split("\n").filter((line) => line !== "");
  const ours = errors.filter((line) => /^(?:types\.ts|node_modules\/(?:@plantstore|plantstore)\/)/.test(line));
  expect(version >= "5.7" ? errors : ours).toEqual([]);
});

describe.each(["5.4", "5.9"])("TypeScript %s", (version) => {
  test.each(["node16 in CommonJS", "node10"] as const)("compiles the types with the resolution %s", (resolution) => {
    user.write("commonjs/package.json", '{"type":"commonjs"}');
    user.write("commonjs/types.ts", program);
    const compiler = `node_modules/ts-${version}/bin/tsc`;
    // The types of grpc-js have errors here.
    const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "node", "--skipLibCheck"];
    const found = user.tryToRun(
      process.execPath,
      compiler,
      ...options,
      ...olderResolutions[resolution],
      "commonjs/types.ts",
    );
    expect(found).toBe("");
  });
});
