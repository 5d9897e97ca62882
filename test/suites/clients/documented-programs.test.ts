import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openMemoryStore } from "../../../src/stores/index.ts";
import { createIssuedCertificate } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, type IdentityProvider, projectFolder, startIdentityProvider, startNode
} from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import type { PageBlock } from "../../../protoport/test/support/docs/page-blocks.ts";
import { startPlantServer, type TestPlantServer, tokens } from "../../support/server/plant-server.ts";

// Runs TypeScript blocks as programs in separate processes, after the code that their text assumes and before code that
// shows their effect. A TLS server with plants 42 and 43, and an identity provider, replace the hosts plants.example
// and id.example. A free port replaces the documented one. A gateway that a block creates is assigned to a variable.

/** The code around a block, and its expected output. */
type Program = { page: string; start: string; before?: string; after?: string; prints: readonly string[] };

const token = 'const token = process.env["TOKEN"] ?? "";';
const listen = 'const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });';

// oxfmt-ignore
const programs: readonly Program[] = [
  {
    page: "docs/how-to/authentication.md",
    start: "import { createPlantServer",
    before: 'import { openMemoryStore } from "plantstore";\nconst store = openMemoryStore(new Set([42n]));',
    after: `const gateway = server;\n${listen}
const headers = { authorization: \`Bearer \${process.env["SIGNED_TOKEN"]}\` };
const response = await fetch(\`http://127.0.0.1:\${port}/plants/42\`, { method: "DELETE", headers });
console.log(response.status);
await server.close();
opened.value.close?.();`,
    prints: ["{ issuer: 'https://id.example', keys: 1 } keys changed\n204"],
  },
  { page: "docs/how-to/clients.md", start: "import { createPlantClient, PlantClientError }", before: token,
    prints: ["plant 42 is deleted", "there is no plant 42"] },
  { page: "docs/how-to/clients.md",
    start: 'import { createClient } from "@connectrpc/connect";\nimport { createConnectTransport', before: token,
    after: 'console.log("deleted");', prints: ["deleted"] },
];

const blocks = blocksRunBy("test/suites/clients/documented-programs.test.ts");
let folder: string;
let provider: IdentityProvider;
let tls: ReturnType<typeof createIssuedCertificate>;

beforeAll(async () => {
  // Inside the project, so that "plantstore" and its dependencies are resolved as in a user's program.
  folder = mkdtempSync(join(projectFolder, "test/code-blocks-"));
  provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  tls = createIssuedCertificate("localhost");
  writeFileSync(join(folder, "authority.pem"), tls.authority);
  // The programs use paths below it.
  symlinkSync(join(projectFolder, "node_modules"), join(folder, "node_modules"));
});
afterAll(() => {
  provider.stop();
  rmSync(folder, { recursive: true, force: true });
});

function programOf({ page, text }: PageBlock): Program {
  const program = programs.find((each) => each.page === page && text.startsWith(each.start));
  if (program === undefined) throw new Error("no row has the code around this block");
  return program;
}

function writeProgram({ text, line }: PageBlock, { before = "", after = "" }: Program, port: number): string {
  const replaced = text
    .replaceAll("plants.example:443", `localhost:${String(port)}`)
    .replaceAll("https://plants.example", `https://localhost:${String(port)}`)
    .replaceAll("https://id.example", provider.issuer);
  const file = join(folder, `program-${String(line)}.ts`);
  writeFileSync(file, [before, replaced, after].join("\n"));
  return file;
}

async function run(file: string, signedToken: string): Promise<string> {
  await using running = startNode([file], folder, {
    TOKEN: tokens.good,
    SIGNED_TOKEN: signedToken,
    // The variables by which node and grpc-js trust an additional authority.
    NODE_EXTRA_CA_CERTS: join(folder, "authority.pem"),
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: join(folder, "authority.pem"),
  });
  expect(await running.end(), running.stderr()).toBe(0);
  return running.stdout().trim().replaceAll(provider.issuer, "https://id.example");
}

test.each(blocks)("the program at line $line in $page has the documented effect", async (block) => {
  const program = programOf(block);
  const store = openMemoryStore(new Set([42n, 43n]));
  await using server: TestPlantServer = await startPlantServer({ store, tls });
  const signedToken = await provider.sign({ aud: "plantstore" });
  const file = writeProgram(block, program, server.address.port);
  for (const prints of program.prints) expect(await run(file, signedToken)).toBe(prints);
});

const starts = programs.map((program) => ({ ...program, inOneLine: program.start.replaceAll(/\s+/g, " ") }));
test.each(starts)('the code block "$inOneLine" in $page still exists', ({ page, start }) => {
  expect(blocks.some((block) => block.page === page && block.text.startsWith(start))).toBe(true);
});
