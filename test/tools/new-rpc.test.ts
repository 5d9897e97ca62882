import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProjectCopy } from "../../tools/mutants/project-copy.ts";
import { buildLimitMs } from "../../packages/testing/src/process/build-step.ts";
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
    getPlant: async ({ id }, { signal }) => {
      if (id === undefined) throw idMissing();
      if (!(await store.has(id, signal))) throw plantNotFound(id);
      return { id };
    },`,
  [pathOf("rpc-policy.ts")]: `
    getPlant: { scope: "plants:read", successDescription: "The plant is returned.", effect: "read" },`,
  [pathOf("client-rules.ts")]: `
  getPlant: { path: PlantServiceService.getPlant.path, scope: "plants:read", deletes: false },`,
  [pathOf("audit.test.ts")]: `
  getPlant: undefined,`,
  [pathOf("every-rpc.test.ts")]: `
  getPlant: (plants) => plants.get(42n),`,
  [pathOf("situations.ts")]: `
    getPlant: [
      getPlant("returns the plant", 70_000n, { code: "ok", response: { json: '{"id":"70000"}', proto: [8, 240, 162, 4] } }),
      getPlant("finds no plant to return", absent, { code: "not_found", message: \`plant \${absent} not found\`, errorCode: "ERR_PLANT_NOT_FOUND" }),
      getPlant("returns no plant without a credential", 70_000n, credentialMissing, []),
      getPlant("returns no plant for an unknown token", 70_000n, invalidWant, [bearer(tokens.unknown)]),
      getPlant("returns no plant without the scope", 70_000n, scopeMissing("plants:read"), [bearer(tokens.narrow)]),
      getPlant("returns no plant while the store is unavailable", ids.away, storeAway),
      getPlant("returns no plant after a fault", ids.fault, handlerFailed),
      { ...getPlant("returns no plant after the deadline", ids.slow, deadlineExceeded), formats: rpcFormats },
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
const headers = { authorization: \`Bearer \${tokens.good}\` };
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

test(
  "the compiler finds errors in the tables of kinds after a new kind of store is declared",
  { timeout: buildLimitMs },
  async () => {
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
    expect(files).toEqual(["src/server/database-url.ts", index, "test/stores/contract/commands.test.ts"]);
    for (const file of files) expect(storeRecipe).toContain(`\`${file}\``);
  },
);

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
    const [plantStore = ""] = sources.filter((path) => basename(path) === "plant-store.ts");
    const backends = sources.filter((path) => /\/(?:memory|sqlite|postgres)-store\.ts$/.test(path));
    expect(backends).toHaveLength(3);
    for (const contract of [plantStore, pathOf("backend.ts")])
      copy.replace(
        contract,
        read(contract).replace(
          "  close(): Promise<void>;",
          "  has(id: bigint, signal: AbortSignal): Promise<boolean>;\n$&",
        ),
      );
    const others = [pathOf("queued-store.ts"), pathOf("fake-store.ts"), pathOf("describe-plant-store.ts")];
    expect(await filesWithErrors()).toEqual([...Object.keys(pieces), ...backends, ...others].toSorted());
  },
);

const readsMax = 2;

/** What each file does for the new method: the code, and the code that it precedes. */
const methodPieces: Readonly<Record<string, readonly (readonly [piece: string, before: string])[]>> = {
  [pathOf("queued-store.ts")]: [
    [
      `async has(id, signal) {
      const error = refusal();
      if (error !== undefined) throw error;
      return await backend.has(id, signal);
    },
    `,
      "async close() {\n      isClosed",
    ],
  ],
  "src/stores/queue/memory-store.ts": [["has: async (id) => plants.has(id),\n    ", "commit: async"]],
  "src/stores/sqlite/storage-thread.ts": [
    [`| { readonly kind: "has"; readonly id: bigint }\n  `, '| { readonly kind: "deleteBatch"'],
    [`| { readonly kind: "found"; readonly found: boolean | StoreProblem }\n  `, '| { readonly kind: "checked"'],
    [
      `async has(id: bigint): Promise<boolean | StoreProblem> {
    const reply = await this.#request({ kind: "has", id });
    if (reply.kind !== "found") throw unexpected(reply);
    return reply.found;
  }

  `,
      "/** Closes the file, and resolves",
    ],
  ],
  [pathOf("worker.ts")]: [
    ["readonly has: (id: bigint) => boolean | StoreProblem;\n  ", "readonly names: FileNames;"],
    [
      `const hasPlant = db.prepare("SELECT 1 FROM plants WHERE id = ?");
    const has = (id: bigint): boolean | StoreProblem => {
      try {
        return hasPlant.get(id) !== undefined;
      } catch (fault) {
        return fileProblemOf(fault);
      }
    };
    `,
      "const names = new FileNames(",
    ],
    ["has, ", "db, identity, names, checkpoints, deleteBatch, checkWrite, dropOldDeletions };"],
    ["has, ", "db, identity, names, checkpoints, deleteBatch, checkWrite, dropOldDeletions }: Work"],
    [`case "has":\n        return reply({ kind: "found", found: has(request.id) });\n      `, 'case "checkWrite":'],
  ],
  "src/stores/sqlite/sqlite-store.ts": [
    ['import { storeUnavailable } from "../../service/index.ts";\n', "import { type Backend"],
    [
      `async has(id: bigint): Promise<boolean> {
    if (this.#isChecking) await this.#thread.opened.catch(() => undefined);
    const found = await this.#thread.has(id);
    if (typeof found === "boolean") return found;
    throw storeUnavailable(found.text);
  }

  `,
      "async close()",
    ],
  ],
  "src/stores/postgres/postgres-store.ts": [
    ['import { storeUnavailable } from "../../service/index.ts";\n', "import { type Attempt"],
    ["readonly #reads: SessionPool;\n  ", "readonly #sessions: SessionPool;"],
    [`this.#reads = new SessionPool(openSession, ${readsMax});\n    `, "this.#sessions = new SessionPool("],
    [
      `async has(id: bigint): Promise<boolean> {
    return await this.#reads.use(performance.now() + batchTimeoutMs, async (session) => {
      try {
        const { plants } = await this.#location.schemaOn(session);
        return (await session.query(\`SELECT FROM \${plants} WHERE id = $1\`, [id])).length > 0;
      } catch (fault) {
        session.discard();
        throw storeUnavailable(problemOf(fault).text);
      }
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
  [pathOf("describe-plant-store.ts")]: [
    [
      `has: (open) => test("returns whether the plant exists", async () => {
    await using opened = await open([3n]);
    const { signal } = new AbortController();
    await expect(opened.store.has(3n, signal)).resolves.toBe(true);
    await expect(opened.store.has(4n, signal)).resolves.toBe(false);
  }),
  `,
      "close: testClose,",
    ],
    ["has: (store) => store.has(3n, new AbortController().signal),\n  ", "delete: (store) => store.delete("],
  ],
  [pathOf("situation-store.ts")]: [
    ["plants.add(70_000n);\n  ", "plants.add(situations.keyTaken);"],
    [
      `has: async (id, signal) => {
      await situationOf(id, signal);
      return await memory.has(id, signal);
    },
    `,
      "delete: async (id, call) => {",
    ],
  ],
  "test/contract/situations.ts": [
    [
      `function getPlant(name: string, id: bigint, want: Want, header: readonly Field[] = [authorized]): Situation {
  const toRequest = (format: WireFormat): HttpRequest => {
    if (format.protocol === "rest") return { httpMethod: "GET", path: \`/plants/\${id}\`, header };
    const deadline = id === ids.slow ? format.timeout?.(20) : undefined;
    const fields = deadline === undefined ? header : [...header, deadline];
    const message = encodeMessage(format, GetPlantRequestSchema, { id });
    return rpcRequest(format, message, fields, "/plantstore.v1.PlantService/GetPlant");
  };
  return { name, want, request: toRequest };
}

`,
      "/** The situations of each RPC, which",
    ],
    [
      `import { encodeMessage } from "../../packages/testing/src/gateway/wire-format.ts";
import { GetPlantRequestSchema } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
`,
      "import type { Want }",
    ],
  ],
  [pathOf("create-plant-client.ts")]: [
    ["get(id: bigint): Promise<boolean>;\n  ", "/** Closes the connection; calls in flight fail. */"],
    [
      `get: (id) =>
      new Promise((resolve, reject) => {
        const deadline = Date.now() + clientTimeoutMs;
        stub.getPlant({ id }, new Metadata(), { deadline }, (error) => {
          if (error === null) resolve(true);
          else if (error.code === status.NOT_FOUND) resolve(false);
          else reject(toPlantClientError(error, clientRules.getPlant));
        });
      }),
    `,
      "close: () => stub.close(),",
    ],
  ],
  [pathOf("authentication.md")]: [
    ["| `GetPlant` | `plants:read` |\n", "\n`plantstore token list --file tokens` lists"],
  ],
};

/** The tests that the recipe names, and that pass once all of its steps are done. */
const tests = [
  pathOf("delete-plant.test.ts"),
  pathOf("every-rpc.test.ts"),
  pathOf("rpc-policy.test.ts"),
  pathOf("audit.test.ts"),
  "test/stores/contract",
];

/** Runs tests in the copy, and returns the titles of those that fail. */
async function failedTests(files: readonly string[]): Promise<string[]> {
  const PATH = [join(copy.folder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const args = ["run", "--project", "unit", ...files];
  const environment = { PATH, NO_COLOR: "1" };
  const { exitCode, stdout, stderr } = await runProgram("vitest", args, {
    folder: copy.folder,
    environment,
    limitMs: buildLimitMs,
  });
  const failed = [...stdout.matchAll(/^ *× (.*?)(?: \d+ms)?$/gm)].map(([, title = ""]) => title);
  expect(exitCode, stdout + stderr).toBe(failed.length === 0 ? 0 : 1);
  return failed;
}

test(
  "a new RPC compiles, is described and is served once all files of the recipe implement it",
  { timeout: buildLimitMs },
  async () => {
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
    expect(await failedTests(tests)).toEqual([]);
  },
);

test.each([
  {
    forgotten: "the scope in authentication.md",
    file: pathOf("authentication.md"),
    code: "| `GetPlant` | `plants:read` |\n",
    runs: pathOf("rpc-policy.test.ts"),
    fails: "authentication.md lists the scope of each RPC",
  },
  {
    forgotten: "the client's scope",
    file: pathOf("client-rules.ts"),
    code: "plants:read",
    runs: pathOf("every-rpc.test.ts"),
    fails: "the client names the scope plants:read when a call of GetPlant is refused",
  },
  {
    forgotten: "the client's retries and advice",
    file: pathOf("client-rules.ts"),
    code: `scope: "plants:read", deletes: false`,
    instead: `scope: "plants:read", deletes: true`,
    runs: pathOf("every-rpc.test.ts"),
    fails: "the client sends a call of GetPlant four times to an unavailable server",
  },
  {
    forgotten: "a situation",
    file: pathOf("situations.ts"),
    code: `      getPlant("returns no plant after a fault", ids.fault, handlerFailed),\n`,
    runs: pathOf("delete-plant.test.ts"),
    fails: "getPlant has a situation for the outcome: handler failed",
  },
  {
    forgotten: "the refusal of a closed store",
    file: pathOf("queued-store.ts"),
    code: "if (error !== undefined) throw error;",
    runs: "test/stores/contract/memory-store.test.ts",
    fails: "refuses later calls of has",
  },
  {
    forgotten: "the error of an unavailable PostgreSQL",
    file: "src/stores/postgres/postgres-store.ts",
    code: "throw storeUnavailable(problemOf(fault).text);",
    instead: "throw fault;",
    runs: "test/stores/contract/postgres-store.test.ts",
    fails: "rejects calls of has without the error of the database",
  },
])("a test names $forgotten if a new RPC lacks it", { timeout: buildLimitMs }, async (row) => {
  const { file, code, instead = "", runs, fails } = row;
  expect(read(file).split(code), `${file} has ${code} once`).toHaveLength(2);
  using _ = copy.replace(
    file,
    read(file).replace(code, () => instead),
  );
  expect(await failedTests([runs])).toContainEqual(expect.stringContaining(fails));
});

test(
  "a new RPC reads PostgreSQL on at most the sessions of its pool, in 200 calls",
  { timeout: buildLimitMs },
  async () => {
    await using postgres = await startPostgres();
    const url = await postgres.createPlants(Array.from({ length: 100 }, (_, i) => BigInt(2 * i + 1)));
    writeFileSync(join(copy.folder, "get-plants.ts"), getPlants);
    const { stdout, stderr } = await runProgram(process.execPath, ["get-plants.ts", url], { folder: copy.folder });
    expect(stderr).toBe("");
    const { got, sessions } = JSON.parse(stdout);
    expect(got.slice(0, 2)).toEqual([expect.stringContaining("plant 0 not found"), '{"id":"1"}']);
    expect(sessions).toBe(readsMax);
    expect(got.filter((text: string) => JSON.parse(text).id !== undefined)).toHaveLength(100);
  },
);
