import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../../src/plants/index.ts";
import { buildLimitMs } from "../process/build-step.ts";
import { createIssuedCertificate } from "../carriers/certificate.ts";
import { projectFolder } from "../process/child-program.ts";
import type { ClientProgram } from "./client-program.ts";
import { within } from "../deadline.ts";
import { startPlantServer, tokens } from "../server/plant-server.ts";
import { createTempFolder } from "../process/temp-folder.ts";

/** The line of a program that the lines of docs/clients.md take the place of. */
const marker = /^.*The lines of docs\/clients\.md stand here\..*$/m;

/** A program that has to start a virtual machine on a busy computer, in ms. */
const endLimitMs = 240_000;

/** What a documented program is built of, and how it is told where things are. */
export interface DocumentedClient {
  /** The language of the code block in docs/clients.md. */
  readonly language: string;
  /** Builds it, and may add to its environment what makes it trust an authority. */
  readonly build: (authorityFile: string) => Promise<ClientProgram>;
}

/**
 * Puts the code block of a language into a program, and where the block names an address, what asks the
 * environment for it: `AUTHORITY` and `URL`.
 */
export function completeProgram(
  file: string,
  language: string,
  address: { readonly authority: string; readonly url: string },
): void {
  const program = readFileSync(file, "utf8");
  if (!marker.test(program)) throw new Error(`${file} has no place for the documented lines`);
  const lines = documentedLines(language)
    .replaceAll('"plants.example:443"', address.authority)
    .replaceAll('"https://plants.example"', address.url);
  const indent = /^\s*/.exec(marker.exec(program)?.[0] ?? "")?.[0] ?? "";
  const indented = lines.replaceAll(/^(?=.)/gm, indent);
  writeFileSync(
    file,
    program.replace(marker, () => indented),
  );
}

function documentedLines(language: string): string {
  const page = readFileSync(join(projectFolder, "docs/clients.md"), "utf8");
  const [, lines] = new RegExp(`^\`\`\`${language}\\n(.*?)\\n\`\`\`$`, "ms").exec(page) ?? [];
  if (lines === undefined) throw new Error(`docs/clients.md has no lines of ${language}`);
  return lines;
}

/** Describes that the lines of docs/clients.md, in a program, delete plant 42 over TLS with nothing but the token. */
export function describeDocumented({ language, build }: DocumentedClient): void {
  describe(`docs/clients.md, ${language}`, () => {
    test("deletes plant 42", async () => expect(await runDocumented(build)).toEqual([43n]), buildLimitMs);
  });
}

/** Runs a documented program against a server with the plants 42 and 43, and returns those that are left. */
export async function runDocumented(build: DocumentedClient["build"]): Promise<readonly bigint[]> {
  using folder = createTempFolder();
  const authorityFile = folder.file("authority.pem");
  const tls = createIssuedCertificate("localhost");
  writeFileSync(authorityFile, tls.authority);
  const plants = new Set([42n, 43n]);
  await using server = await startPlantServer({ store: openMemoryStore(plants), tls });
  const authority = `localhost:${server.address.port}`;
  await run(await build(authorityFile), {
    AUTHORITY: authority,
    URL: `https://${authority}`,
    TOKEN: tokens.good,
    // What Go and Rust take for the authorities of the system, what Python's gRPC does, and what curl does.
    SSL_CERT_FILE: authorityFile,
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: authorityFile,
    CURL_CA_BUNDLE: authorityFile,
  });
  return [...plants];
}

async function run(
  { command, folder, environment }: ClientProgram,
  server: Readonly<Record<string, string>>,
): Promise<void> {
  const [file, ...args] = command;
  const child = spawn(file, args, {
    cwd: folder ?? projectFolder,
    env: { ...process.env, ...server, ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  try {
    const ends = Promise.all([text(child.stderr), once(child, "exit")]);
    const [complaints] = await within(ends, `the end of ${file}`, endLimitMs);
    if (child.exitCode !== 0) throw new Error(`${file} ended with ${child.exitCode}: ${complaints}`);
  } finally {
    child.kill("SIGKILL");
  }
}
