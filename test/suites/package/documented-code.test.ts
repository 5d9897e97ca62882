import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { pageBlocks } from "../../support/docs/page-blocks.ts";
import { generateGreetCode } from "../../../protoport/test/support/package/greet-code.ts";

// Excludes the tutorial's blocks, which are one program's files that tutorial.test.ts compiles. Also excludes the
// plugins' blocks, which the suite `frameworks` runs with the frameworks.
const blocks = pageBlocks.filter(
  ({ language, page, text }) =>
    language === "ts" &&
    page !== "protoport/docs/tutorials/first-service.md" &&
    !/"@protoport\/(?:frameworks\/|grpc-handlers\/nestjs)/.test(text),
);

// The declarations that the text around the blocks assumes.
const surroundings = `
import type { ConnectRouter } from "@connectrpc/connect";
import type { PlantStore } from "plantstore";
import type { TokenVerifier } from "@protoport/auth";
import type { createGateway as create } from "@protoport/gateway";
import type { ProtocolExtension } from "@protoport/gateway/mcp";
import type { IncomingMessage, ServerResponse } from "node:http";
interface Reply {
  readonly raw: ServerResponse;
  getHeaders(): Record<string, number | string | string[] | undefined>;
}
/** The parts of Express and Fastify applications that the blocks use. */
interface App {
  use(handler: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): void;
  addHook(
    name: "onRequest",
    hook: (request: { raw: IncomingMessage }, reply: Reply, done: () => void) => void,
  ): void;
}
declare global {
  const app: App;
  const gateway: ReturnType<typeof create>;
  const token: string;
  const grpcPort: number;
  const store: PlantStore;
  const routes: (router: ConnectRouter) => void;
  const createGateway: typeof create;
  const isSigned: (bytes: Uint8Array, signature: string | null) => boolean;
  const callerOf: (authorization: string | null) => Promise<string | undefined>;
  const mcp: ProtocolExtension;
  const verifier: TokenVerifier;
  const mayCall: (caller: string, procedure: string) => boolean;
}
`;
const routes = `
import type { ConnectRouter } from "@connectrpc/connect";
export const routes = (router: ConnectRouter): ConnectRouter => router;
`;
const configuration = { extends: "../../tsconfig.json", include: ["."], exclude: [] };

let folder: string;
let problems: string;

beforeAll(() => {
  // Inside the project, so that "plantstore" and its dependencies are resolved as in a user's program.
  folder = mkdtempSync(join(projectFolder, "test/code-blocks-"));
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  write("tsconfig.json", JSON.stringify(configuration));
  write("surroundings.d.ts", surroundings);
  write("routes.ts", routes);
  write("greetings.ts", "export const greetings = {};\n");
  generateGreetCode(folder);
  for (const [index, { text }] of blocks.entries()) write(`block-${index}.ts`, `${text}\nexport {};\n`);
  problems = compile();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function compile(): string {
  try {
    return execFileSync("tsc", ["-p", folder], { cwd: projectFolder, encoding: "utf8" });
  } catch (reason) {
    return reason instanceof Error && "stdout" in reason ? String(reason.stdout) : String(reason);
  }
}

test.each(blocks.map((block, index) => ({ ...block, index })))(
  "the code at line $line in $page compiles",
  ({ index }) => {
    expect(problems.split("\n").filter((line) => line.includes(`block-${index}.ts`))).toEqual([]);
  },
);

test("the declarations that complete the documented code compile", () => {
  expect(problems.split("\n").filter((line) => /(?:surroundings|routes)\./.test(line))).toEqual([]);
});
