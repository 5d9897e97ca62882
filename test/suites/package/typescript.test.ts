import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compilers } from "../../support/package/compilers.ts";
import { createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";

// The types of every subpath, read by each TypeScript in each way to resolve, with `skipLibCheck` off.

let user: UserProject;

const program = `
import { createPlantServer, openMemoryStore, type PlantServer } from "plantstore";
import { createGateway, type Gateway } from "@plantstore/gateway";
import { createBearerAuth } from "@plantstore/auth";
import { createPlantClient } from "plantstore/client";
import { PlantService } from "plantstore/connect";
export const server: PlantServer = createPlantServer({ store: openMemoryStore() });
export const gateway: Gateway = createGateway({ routes: () => {} });
export const admit: typeof createBearerAuth = createBearerAuth;
// @ts-expect-error: it is known, and no number.
export const client: number = createPlantClient({ address: "", token: "" });
// @ts-expect-error: it is known, and no number.
export const service: number = PlantService;
`;

const resolutions = {
  nodenext: ["--module", "nodenext"],
  bundler: ["--module", "esnext", "--moduleResolution", "bundler"],
} as const;

/** How compilers of projects that are no ES modules resolve; 7.0 has neither any more. */
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
  // The types are the same; where they are looked for, the oldest, the first for which the peers are clean and the newest
  // tell.
  ...["5.4", "5.7", "7.0"].map((version) => ({ version, resolution: "bundler" as const })),
])("TypeScript $version reads the types, by $resolution", ({ version, resolution }) => {
  const compiler = `node_modules/ts-${version}/bin/tsc`;
  const options = ["--noEmit", "--strict", "--target", "es2022", "--types", "node", "--skipLibCheck", "false"];
  const found = user.tryToRun(process.execPath, compiler, ...options, ...resolutions[resolution], "types.ts");
  const errors = found.split("\n").filter((line) => line !== "");
  const ours = errors.filter((line) => /^(?:types\.ts|node_modules\/(?:@plantstore|plantstore)\/)/.test(line));
  expect(version >= "5.7" ? errors : ours).toEqual([]);
});

describe.each(["5.4", "5.9"])("TypeScript %s", (version) => {
  test.each(["node16 in CommonJS", "node10"] as const)("reads the types, by %s", (resolution) => {
    user.write("commonjs/package.json", '{"type":"commonjs"}');
    user.write("commonjs/types.ts", program);
    const compiler = `node_modules/ts-${version}/bin/tsc`;
    // The types of grpc-js are not clean here.
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
