import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compilers } from "../../../protoport/test/support/package/compilers.ts";
import { webEntries } from "../../../protoport/test/support/package/web-entries.ts";
import { rowsFor } from "@protoport/testing/process";
import { createUserProject, type UserProject } from "../../../protoport/test/support/package/user-project.ts";
import { packedHouses } from "../../support/package/packed-houses.ts";

// Compiles the types of all entries with each TypeScript version, each module resolution and the types of each
// platform, with `skipLibCheck` off.

let user: UserProject;
const webProgram = `
import { createFetchGateway, type FetchGateway } from "@protoport/gateway/fetch";
import { createMcp } from "@protoport/gateway/mcp";
import { openValidation } from "@protoport/gateway/validation";
import { createRestTransport } from "@protoport/rest-client";
import { PlantService } from "plantstore/connect";
export const transport = createRestTransport({ baseUrl: "https://plants.example" });
export async function openGateway(): Promise<FetchGateway> {
  return createFetchGateway({
    routes: (router) => router.service(PlantService, {
      deletePlant: (_request, { requestHeader, responseHeader, signal }) => {
        signal.throwIfAborted();
        responseHeader.set("x-plant", requestHeader.get("x-plant") ?? "");
        return {};
      },
    }),
    validation: await openValidation(),
    mcp: createMcp({ tools: ["plantstore.v1.PlantService.*"] }),
  });
}
export default {
  fetch: async (request: Request): Promise<Response> => (await openGateway()).fetch(request),
};
// @ts-expect-error: the member is known, and is not a number.
export const gateway: number = createFetchGateway({ routes: () => {} });
`;

const nodeProgram = `
import { createGateway, type Gateway } from "@protoport/gateway";
import { createPlantServer, openMemoryStore, type PlantServer } from "plantstore";
import { createBearerAuth } from "@protoport/auth";
import { createPlantClient } from "plantstore/client";
import { PlantService } from "plantstore/connect";
export const server: PlantServer = createPlantServer({ store: openMemoryStore() });
export const gateway: Gateway = createGateway({ routes: () => {} });
export const admit: typeof createBearerAuth = createBearerAuth;
// @ts-expect-error: the member is known, and is not a number.
export const client: number = createPlantClient({ address: "", token: "" });
// @ts-expect-error: the member is known, and is not a number.
export const service: number = PlantService;
`;

const publicEntries = (): string[] =>
  Object.keys(packedHouses()).flatMap((name) => {
    const { exports }: { exports: object } = JSON.parse(user.run("cat", `node_modules/${name}/package.json`));
    const subpaths = Object.keys(exports).filter((path) => !/\.json$|\/internal\/|\*/.test(path));
    return subpaths.map((path) => name + path.slice(1));
  });

/** Appends an import for each entry to a program. */
function usingEntries(program: string, entries: readonly string[]): string {
  const imports = entries.map((entry, at) => `import * as entry${at} from ${JSON.stringify(entry)};`);
  return [...imports, program, `export const entries = [${entries.map((_, at) => `entry${at}`).join(", ")}];`].join(
    "\n",
  );
}

beforeAll(() => {
  user = createUserProject();
  const own = Object.values(packedHouses());
  const named = compilers.map((version) => `ts-${version}@npm:typescript@~${version}.0`);
  const types = ["@grpc/grpc-js@1.14.7", "@types/node@22", "@cloudflare/workers-types@5.20261117.1"];
  const peers = ["@bufbuild/protovalidate@1", "@opentelemetry/api@1.10.0"];
  user.run("npm", "install", "--no-audit", "--no-fund", ...own, ...types, ...peers, ...named);
  user.write("types.ts", usingEntries(nodeProgram, publicEntries()));
  user.write("web.ts", usingEntries(webProgram, [...webEntries, "plantstore/connect"]));
  user.write("commonjs/package.json", '{"type":"commonjs"}');
  user.write("commonjs/types.ts", usingEntries(nodeProgram, publicEntries()));
});
afterAll(() => rmSync(user.path, { recursive: true }));

function compile(version: string, file: string, options: object): readonly string[] {
  const common = { noEmit: true, strict: true, target: "es2022", skipLibCheck: false };
  user.write("tsconfig.json", JSON.stringify({ compilerOptions: { ...common, ...options }, files: [file] }));
  const output = user.tryToRun(process.execPath, `node_modules/ts-${version}/bin/tsc`, "-p", "tsconfig.json");
  return output.split("\n").filter((line) => line !== "");
}

const bundler = { module: "esnext", moduleResolution: "bundler" };
const resolutions = {
  nodenext: { module: "nodenext" },
  bundler: { ...bundler, exactOptionalPropertyTypes: true },
} as const;

/** The module resolutions that CommonJS projects use. TypeScript 7.0 no longer supports the second one. */
const commonJsResolutions = {
  node16: { module: "node16" },
  node10: { module: "commonjs", moduleResolution: "node10" },
} as const;

test.each([
  ...compilers.map((version) => ({ version, resolution: "nodenext" as const })),
  // The types are the same for all versions. Their resolution is tested with three versions: the oldest, the first
  // without errors in the peers, and the newest.
  ...["5.4", "5.7", "7.0"].map((version) => ({ version, resolution: "bundler" as const })),
])("TypeScript $version with module resolution $resolution compiles the types", ({ version, resolution }) => {
  const errors = compile(version, "types.ts", { types: ["node"], ...resolutions[resolution] });
  const ours = errors.filter((line) => /^(?:types\.ts|node_modules\/(?:@protoport|plantstore)\/)/.test(line));
  expect(version >= "5.7" ? errors : ours).toEqual([]);
});

test.each([
  { version: "5.4", resolution: "node10", skipLibCheck: true },
  { version: "5.4", resolution: "node16", skipLibCheck: true },
  { version: "5.9", resolution: "node10", skipLibCheck: true },
  { version: "5.7", resolution: "node16", skipLibCheck: false },
  { version: "7.0", resolution: "node16", skipLibCheck: false },
] as const)("TypeScript $version with module resolution $resolution compiles the types for CommonJS", (consumer) => {
  const { version, resolution, skipLibCheck } = consumer;
  const options = { types: ["node"], skipLibCheck, ...commonJsResolutions[resolution] };
  expect(compile(version, "commonjs/types.ts", options)).toEqual([]);
});

/** The types for platforms other than Node. Each is compiled with one version, and with all versions at night. */
const platforms = [
  { name: "Cloudflare Workers", lib: ["es2022"], types: ["@cloudflare/workers-types"] },
  { name: "the webworker library", lib: ["es2022", "webworker"], types: [] },
  { name: "the DOM library", lib: ["es2022", "dom"], types: [] },
  { name: "the DOM libraries", lib: ["es2022", "dom", "dom.iterable"], types: [] },
];
/** The versions with which the peers' types have no errors. */
const withoutErrorsInPeers = compilers.filter((version) => version >= "5.7");

test.each(
  withoutErrorsInPeers.flatMap((version) =>
    rowsFor(version, withoutErrorsInPeers, platforms).map((platform) => ({ version, ...platform })),
  ),
)("TypeScript $version with types for $name compiles the web entries", ({ version, lib, types }) => {
  expect(compile(version, "web.ts", { ...bundler, exactOptionalPropertyTypes: true, lib, types })).toEqual([]);
});
