import { writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { openMemoryStore } from "../../../src/plantstore/plants/index.ts";
import { createIssuedCertificate } from "../carriers/certificate.ts";
import { projectFolder } from "../process/child-program.ts";
import type { ClientProgram } from "./client-program.ts";
import { within } from "../deadline.ts";
import { startPlantServer, tokens } from "../server/plant-server.ts";
import { createTempFolder } from "../process/temp-folder.ts";

/** A program that has to fetch what it runs on a busy computer, in ms. */
const endLimitMs = 240_000;

/** Runs a documented command over TLS against a server with the plants 42 and 43, and returns those that are left. */
export async function runDocumented(program: ClientProgram): Promise<readonly bigint[]> {
  using folder = createTempFolder();
  const authorityFile = folder.file("authority.pem");
  const tls = createIssuedCertificate("localhost");
  writeFileSync(authorityFile, tls.authority);
  const plants = new Set([42n, 43n]);
  await using server = await startPlantServer({ store: openMemoryStore(plants), tls });
  const authority = `localhost:${server.address.port}`;
  await run(program, {
    AUTHORITY: authority,
    URL: `https://${authority}`,
    TOKEN: tokens.good,
    // What Go takes for the authorities of the system, and what curl does.
    SSL_CERT_FILE: authorityFile,
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
