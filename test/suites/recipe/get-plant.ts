import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";

// The recipe for a new RPC in CONTRIBUTING.md, and the code with which its steps add GetPlant.

const page: string = readFileSync(join(projectFolder, "CONTRIBUTING.md"), "utf8");
export const recipe: string = page.slice(page.indexOf("**A new RPC**"), page.indexOf("**A new error**"));

/** Returns a file's path in the recipe by its name. */
export function pathOf(name: string): string {
  const paths = [...recipe.matchAll(/`([\w/.-]+\/[\w.-]+)`/g)].map(([, path = ""]) => path);
  const path = paths.find((each) => basename(each) === name);
  if (path === undefined) throw new Error(`the recipe does not name ${name}`);
  return path;
}

export const definition: string = pathOf("plant_service.proto");

export const rpc = `
  // Returns the plant with the given identifier.
  rpc GetPlant(GetPlantRequest) returns (GetPlantResponse) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option (google.api.http) = {get: "/plants/{id}"};
  }
`;

export const messages = `
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

/** The code that the compiler requires in each file. The code is inserted before that of DeletePlant. */
export const pieces: Readonly<Record<string, string>> = {
  [pathOf("plant-service.ts")]: `
    getPlant: async ({ id }, { signal }) => {
      if (id === undefined) throw idMissing();
      if (!(await store.has(id, signal))) throw plantNotFound(id);
      return { id };
    },`,
  [pathOf("rpc-policy.ts")]: `
    getPlant: { scope: "plants:read", successDescription: "The plant is returned.", effect: "read" },`,
  [pathOf("create-plant-client.ts")]: `
  getPlant: undefined,`,
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

/** Each file's code for the stores' new method or its tests, and the existing code before which it is inserted. */
// oxfmt-ignore
export const methodPieces: Readonly<Record<string, readonly (readonly [piece: string, before: string])[]>> = {
  [pathOf("delete-queue.ts")]: [
    [
      `async has(id, signal) {
      const problem = problemOf(backend);
      if (isClosed || problem !== undefined) throw storeUnavailable(problem);
      return await backend.has(id, signal);
    },
    `,
      "async close() {\n      isClosed",
    ],
  ],
  "src/stores/queue/memory-store.ts": [["has: async (id) => plants.has(id),\n    ", "commit: (batch)"]],
  "src/stores/sqlite/storage-thread.ts": [["| { readonly has: bigint } ", '| "check" | "close";'],
    ["readonly found?: boolean;\n  ", "readonly file?: StoreFile;"]],
  [pathOf("worker.ts")]: [
    [
      `const hasPlant = db.prepare("SELECT 1 FROM plants WHERE id = ?");
  const has = (id: bigint): StorageReply => {
    try {
      return { outcomes: [], found: hasPlant.get(id) !== undefined };
    } catch (fault) {
      return { outcomes: [], problem: fileProblemOf(fault) };
    }
  };
  `,
      "const reportSecondName = reportProblem(",
    ],
    [
      'if (typeof request === "object" && "has" in request) postToParent(has(request.has));\n    else ',
      'if (typeof request === "object") postToParent(deleteBatch(request));',
    ],
  ],
  "src/stores/sqlite/sqlite-store.ts": [
    ['import { storeUnavailable } from "../../service/index.ts";\n', "import { type Backend"],
    [
      `async has(id) {
      if (isChecking) await thread.opened.catch(() => undefined);
      const { found, problem } = await thread.request({ has: id });
      if (found !== undefined) return found;
      throw storeUnavailable(problem?.text);
    },
    `,
      "async close()",
    ],
  ],
  "src/stores/postgres/postgres-store.ts": [
    ['import { storeUnavailable } from "../../service/index.ts";\n', "import type { PlantStore, StoreConnections }"],
    [
      "readonly #reads: SessionPool;\n  #lastRead: Promise<unknown> = Promise.resolve();\n  ",
      "readonly #sessions: SessionPool;",
    ],
    [
      "this.#reads = new SessionPool(() => new Session(server, deleteTimeouts, prepared));\n    ",
      "this.#sessions = new SessionPool(",
    ],
    [
      `async has(id: bigint): Promise<boolean> {
    const read = this.#lastRead.then(() => this.#find(id));
    this.#lastRead = read.catch(() => undefined);
    return await read;
  }

  async #find(id: bigint): Promise<boolean> {
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
  [pathOf("fake-store.ts")]: [["has: () => Promise.resolve(true), ", "problem: undefined, delete:"],
    ["has: () => Promise.resolve(true), ", "problem: undefined, commit,"]],
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
      "/** Each RPC's situations, which",
    ],
    [
      `import { encodeMessage } from "../../protoport/testing/src/gateway/wire-format.ts";
import { GetPlantRequestSchema } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
`,
      "import type { Want }",
    ],
  ],
  [pathOf("create-plant-client.ts")]: [
    ["get(id: bigint): Promise<boolean>;\n  ", "/** Closes the connection after the calls that have been sent. Calls that wait fail with CANCELLED or UNAVAILABLE. */"],
    [
      `get: (id) =>
      new Promise((resolve, reject) => {
        const deadline = Date.now() + (options.timeoutMs ?? defaultTimeoutMs);
        stub.getPlant({ id }, new Metadata(), { deadline }, (error) => {
          if (error === null) resolve(true);
          else if (error.code === status.NOT_FOUND) resolve(false);
          else reject(toPlantClientError(error, "getPlant"));
        });
      }),
    `,
      "stub,\n    close:",
    ],
  ],
  [pathOf("authentication.md")]: [["| `GetPlant` | `plants:read` |\n", "\n`plantstore token list --file tokens` lists"]],
};
