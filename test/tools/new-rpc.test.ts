import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProjectCopy } from "../../tools/mutants/project-copy.ts";
import { carriagesWithTools } from "../../packages/testing/src/gateway/wire-format.ts";
import { buildLimitMs, buildStep } from "../../packages/testing/src/process/build-step.ts";
import { startPostgres } from "../support/plants/postgres-server.ts";
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
    getPlant: async ({ id }) => {
      if (id === undefined) throw idMissing();
      if (!(await store.has(id))) throw plantNotFound(id);
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

/** A program in the copy that gets 200 plants from a server on a PostgreSQL store, and prints what it got. */
const getPlants = `
import { createPlantServer, openPlantStore } from "./src/index.ts";
import { runSql } from "./test/support/plants/postgres-server.ts";
import { testVerifier, tokens } from "./test/support/server/plant-server.ts";
const url = process.argv[2] ?? "";
const store = await openPlantStore({ kind: "postgres", url });
const server = createPlantServer({ store, verifier: testVerifier });
const headers = { authorization: \`Bearer \${tokens.narrow}\` };
const { port } = await server.listen({});
const get = async (id: number) => await (await fetch(\`http://127.0.0.1:\${port}/plants/\${id}\`, { headers })).text();
const got = await Promise.all(Array.from({ length: 200 }, (_, id) => get(id)));
const sessions = await runSql(url, "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT FROM %plants WHERE id = $1'");
console.log(JSON.stringify({ got, sessions: sessions.length }));
await server.close();
process.exit();
`;

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

test("the compiler finds every table that a new store kind must join", { timeout: buildLimitMs }, async () => {
  const index = "src/stores/index.ts";
  using _ = copy.replace(
    index,
    read(index).replace(
      "  readonly postgres: PostgresLocation;",
      '$&\n  readonly mysql: { readonly kind: "mysql"; readonly url: string };',
    ),
  );
  const storeRecipe = page.slice(page.indexOf("**A new store**"), page.indexOf("**A change of the schema**"));
  const files = await filesWithErrors();
  expect(files).toEqual(["src/server/database-url.ts", index]);
  for (const file of files) expect(storeRecipe).toContain(`\`${file}\``);
});

test("the compiler finds every file in the recipe for a new RPC", { timeout: buildLimitMs }, async () => {
  const text = read(definition);
  const end = text.indexOf("\n}\n", text.indexOf("service PlantService"));
  copy.replace(definition, text.slice(0, end + 1) + rpc + text.slice(end + 1) + messages);
  await generate();
  const files = readdirSync(join(copy.folder, "src"), { recursive: true, encoding: "utf8" });
  const sources = files.map((path) => `src/${path}`);
  const [plantStore = ""] = sources.filter((path) => basename(path) === "plant-store.ts");
  const backends = sources.filter((path) => /\/(?:memory|sqlite|postgres)-store\.ts$/.test(path));
  expect(backends).toHaveLength(3);
  for (const contract of [plantStore, pathOf("backend.ts")])
    copy.replace(
      contract,
      read(contract).replace("  close(): Promise<void>;", "  has(id: bigint): Promise<boolean>;\n$&"),
    );
  const others = [pathOf("queued-store.ts"), pathOf("fake-store.ts"), pathOf("describe-plant-store.ts")];
  expect(await filesWithErrors()).toEqual([...Object.keys(pieces), ...backends, ...others].toSorted());
});

const readsMax = 2;

/** What each file does for the new method: the code, and the code that it precedes. */
const methodPieces: Readonly<Record<string, readonly (readonly [piece: string, before: string])[]>> = {
  [pathOf("queued-store.ts")]: [["has: (id) => backend.has(id),\n    ", "async close() {"]],
  "src/stores/queue/memory-store.ts": [["has: async (id) => plants.has(id),\n    ", "commit: async"]],
  // The request to the thread is omitted.
  "src/stores/sqlite/sqlite-store.ts": [
    ["has(): Promise<boolean> {\n    return Promise.resolve(false);\n  }\n\n  ", "async close()"],
  ],
  "src/stores/postgres/postgres-store.ts": [
    ["readonly #reads: SessionPool;\n  ", "readonly #sessions: SessionPool;"],
    [`this.#reads = new SessionPool(openSession, ${readsMax});\n    `, "this.#sessions = new SessionPool("],
    [
      `async has(id: bigint): Promise<boolean> {
    return await this.#reads.use(performance.now() + batchTimeoutMs, async (session) => {
      const { plants } = await this.#location.schemaOn(session);
      return (await session.query(\`SELECT FROM \${plants} WHERE id = $1\`, [id])).length > 0;
    });
  }

  `,
      "async close()",
    ],
    ["this.#reads.close(), ", "this.#sessions.close()"],
  ],
  [pathOf("fake-store.ts")]: [
    ["has: () => Promise.resolve(true), ", "problem: undefined, delete:"],
    ["has: () => Promise.resolve(true), ", "problem: undefined, commit,"],
  ],
  [pathOf("describe-plant-store.ts")]: [['has: () => test.todo("has"),\n  ', "close: testClose,"]],
};

test("a new RPC is served once the recipe's files implement it", { timeout: buildLimitMs }, async () => {
  for (const [path, piece] of Object.entries(pieces))
    copy.replace(path, read(path).replace(/\n(?= +(?:async )?deletePlant\b)/, `${piece}$&`));
  for (const [path, ofFile] of Object.entries(methodPieces)) {
    for (const [piece, before] of ofFile) {
      expect(read(path).split(before), `${path} has ${before} once`).toHaveLength(2);
      copy.replace(
        path,
        read(path).replace(before, () => piece + before),
      );
    }
  }
  expect(await filesWithErrors()).toEqual([]);
  await generate();
  const { paths } = JSON.parse(read("openapi.json"));
  expect(paths["/plants/{id}"].get.responses["200"].description).toBe("The plant is returned.");
  const args = ["run", "--project", "unit", pathOf("delete-plant.test.ts"), "-t", "returns the plant"];
  const PATH = [join(copy.folder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const output = await buildStep("vitest", args, { folder: copy.folder, environment: { PATH, NO_COLOR: "1" } });
  expect(output).toContain(`${carriagesWithTools.length} passed`);
});

test("a new RPC reads PostgreSQL through at most its pool's sessions", { timeout: buildLimitMs }, async () => {
  await using postgres = await startPostgres();
  const url = await postgres.createPlants(Array.from({ length: 100 }, (_, i) => BigInt(2 * i + 1)));
  writeFileSync(join(copy.folder, "get-plants.ts"), getPlants);
  const { stdout, stderr } = await runProgram(process.execPath, ["get-plants.ts", url], { folder: copy.folder });
  expect(stderr).toBe("");
  const { got, sessions } = JSON.parse(stdout);
  expect(got.slice(0, 2)).toEqual([expect.stringContaining("plant 0 not found"), '{"id":"1"}']);
  expect(sessions).toBe(readsMax);
  expect(got.filter((text: string) => JSON.parse(text).id !== undefined)).toHaveLength(100);
});
