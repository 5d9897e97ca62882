import { readdirSync, readFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProjectCopy } from "../../tools/mutants/project-copy.ts";
import { carriagesWithTools } from "../../packages/testing/src/gateway/wire-format.ts";
import { buildLimitMs, buildStep } from "../../packages/testing/src/process/build-step.ts";
import { projectFolder, type ProgramResult, runProgram } from "../../packages/testing/src/process/child-program.ts";

// Follows the recipe for a new RPC in CONTRIBUTING.md on a copy of the project: runs its commands, and adds GetPlant to the
// files that it names.

const page = readFileSync(join(projectFolder, "CONTRIBUTING.md"), "utf8");
const recipe = page.slice(page.indexOf("**A new RPC**"), page.indexOf("**A new error**"));

/** Returns the path of a file in the recipe by its name. */
function pathOf(name: string): string {
  const paths = [...recipe.matchAll(/`([\w/.-]+\/[\w.-]+)`/g)].map(([, path = ""]) => path);
  const path = paths.find((each) => basename(each) === name);
  if (path === undefined) throw new Error(`the recipe does not name ${name}`);
  return path;
}

const definition = pathOf("plant_service.proto");
const rpc = `
  // Returns the plant with the given identifier.
  rpc GetPlant(GetPlantRequest) returns (GetPlantResponse) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option (google.api.http) = {get: "/plants/{id}"};
  }
`;
const messages = `
// Names the plant to return.
message GetPlantRequest {
  // The identifier of the plant.
  optional int64 id = 1;
}

// The plant.
message GetPlantResponse {
  // The identifier of the plant.
  int64 id = 1;
}
`;

/** The code that the compiler requires in each file; it is inserted before that of DeletePlant. */
const pieces: Readonly<Record<string, string>> = {
  [pathOf("plant-service.ts")]: `
    getPlant: ({ id }) => {
      if (id === undefined) throw idMissing();
      return { id };
    },`,
  [pathOf("rpc-policy.ts")]: `
    getPlant: { scope: "plants:read", successDescription: "The plant is returned.", acceptsIdempotencyKey: false, auditTrail: undefined },`,
  [pathOf("audit.test.ts")]: `
  getPlant: undefined,`,
  // The method of the client is omitted: the test then fails, but compiles.
  [pathOf("every-rpc.test.ts")]: `
  getPlant: () => Promise.resolve(),`,
  [pathOf("situations.ts")]: `
    getPlant: [
      {
        name: "returns the plant",
        request: (format) =>
          format.protocol === "rest"
            ? { httpMethod: "GET", path: "/plants/7", header: [authorized] }
            : rpcRequest(
                format,
                // {id: 7}
                Buffer.from(format.codec === "json" ? '{"id":"7"}' : [8, 7]),
                [authorized],
                "/plantstore.v1.PlantService/GetPlant",
              ),
        want: { code: "ok", response: { json: '{"id":"7"}', proto: "\\b\\x07" } },
      },
    ],`,
};

let copy: ProjectCopy;
beforeAll(() => {
  copy = new ProjectCopy(projectFolder);
});
afterAll(() => copy[Symbol.dispose]());

function read(path: string): string {
  return readFileSync(join(copy.folder, path), "utf8");
}

/** Runs a command of the recipe in the copy. */
async function run(command: string): Promise<ProgramResult> {
  expect(recipe).toContain(`\`${command}\``);
  const [program = "", ...words] = command.split(" ");
  return await runProgram(program, words, { folder: copy.folder, limitMs: buildLimitMs });
}

async function generate(): Promise<void> {
  const { exitCode, stdout, stderr } = await run("npm run generate");
  expect(exitCode, stdout + stderr).toBe(0);
}

/** Returns the files in which the compiler finds errors. */
async function filesWithErrors(): Promise<string[]> {
  const { stdout } = await run("npm run typecheck");
  return [...new Set([...stdout.matchAll(/^([\w/.-]+)\(\d+,\d+\): error /gm)].map(([, path = ""]) => path))].toSorted();
}

test(
  "the compiler finds errors in all files of the recipe after a new RPC and a new method of the stores are declared",
  { timeout: buildLimitMs },
  async () => {
    const text = read(definition);
    const end = text.indexOf("\n}\n", text.indexOf("service PlantService"));
    copy.replace(definition, text.slice(0, end + 1) + rpc + text.slice(end + 1) + messages);
    await generate();
    const files = readdirSync(join(copy.folder, "src"), { recursive: true, encoding: "utf8" });
    const sources = files.map((path) => `src/${path}`);
    const [contract = ""] = sources.filter((path) => basename(path) === "plant-store.ts");
    const stores = sources.filter((path) => ["memory-store.ts", "store.ts"].includes(basename(path)));
    using _ = copy.replace(
      contract,
      read(contract).replace("close(): Promise<void>;", "$&\n  has(id: bigint): Promise<boolean>;"),
    );
    const tests = [pathOf("fake-store.ts"), pathOf("describe-plant-store.ts")];
    expect(await filesWithErrors()).toEqual([...Object.keys(pieces), ...stores, ...tests].toSorted());
  },
);

test(
  "a new RPC compiles, is described and is served once all files of the recipe implement it",
  { timeout: buildLimitMs },
  async () => {
    for (const [path, piece] of Object.entries(pieces))
      copy.replace(path, read(path).replace(/\n(?= +(?:async )?deletePlant\b)/, `${piece}$&`));
    expect(await filesWithErrors()).toEqual([]);
    await generate();
    const { paths } = JSON.parse(read("openapi.json"));
    expect(paths["/plants/{id}"].get.responses["200"].description).toBe("The plant is returned.");
    const args = ["run", "--project", "unit", pathOf("delete-plant.test.ts"), "-t", "returns the plant"];
    const PATH = [join(copy.folder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
    const output = await buildStep("vitest", args, { folder: copy.folder, environment: { PATH, NO_COLOR: "1" } });
    expect(output).toContain(`${carriagesWithTools.length} passed`);
  },
);
