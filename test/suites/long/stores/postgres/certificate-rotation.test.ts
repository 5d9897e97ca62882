import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { type Certificate, createCertificate } from "@protoport/testing/http";
import { closing, createTempFolder, freePort, type TempFolder } from "@protoport/testing/process";
import { configOf, deleteCall, type PostgresServer, runSql, startPostgres } from "../../../../support/plants/index.ts";
import { runCommand } from "../../../../support/process/run-command.ts";

// Rotates the certificates of a running PostgreSQL and its clients. Each certificate is its own authority.

const first = createCertificate("first");
let server: PostgresServer;
let port: number;
let folder: TempFolder;
beforeAll(async () => {
  port = await freePort();
  server = await startPostgres([], { tls: { certificate: first, port } });
  folder = createTempFolder();
});
afterAll(async () => {
  folder[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => setServerCertificate(first));

/** Renews the server's certificate, and disconnects its clients, as a failover does. */
async function setServerCertificate({ cert, key }: Certificate): Promise<void> {
  writeFileSync(join(server.socketFolder, "cert.pem"), cert);
  writeFileSync(join(server.socketFolder, "key.pem"), key);
  const url = await server.createSchema();
  await runSql(url, "SELECT pg_reload_conf()");
  await disconnectClients(url);
}

async function disconnectClients(url: string): Promise<void> {
  await runSql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl");
}

/** Returns the URL over TLS with the authorities in this file. */
function tlsUrlOf(url: string, file: string, mode = "verify-full"): string {
  const options = encodeURIComponent(configOf(url).options ?? "");
  const tls = `sslmode=${mode}&sslrootcert=${folder.file(file)}`;
  return `postgres://tester@127.0.0.1:${port}/postgres?${tls}&options=${options}`;
}

test("stores follow changes to the certificate authority without a restart", async () => {
  const ids = [1n, 2n, 3n, 4n, 5n, 6n];
  const url = await server.createPlants(ids);
  writeFileSync(folder.file("one.pem"), first.cert);
  writeFileSync(folder.file("two.pem"), first.cert);
  const options = { url: tlsUrlOf(url, "two.pem"), currentUrl: () => tlsUrlOf(url, "two.pem") };
  const stores = await Promise.all([openPostgresStore({ url: tlsUrlOf(url, "one.pem") }), openPostgresStore(options)]);
  const deleteNext = () => Promise.all(stores.map((store) => store.delete(ids.shift() ?? 0n, deleteCall())));
  await expect(deleteNext()).resolves.toEqual([true, true]);
  for (const name of ["second", "third"]) {
    const next = createCertificate(name);
    writeFileSync(folder.file("one.pem"), next.cert);
    writeFileSync(folder.file("two.pem"), next.cert);
    await setServerCertificate(next);
    await expect(deleteNext()).resolves.toEqual([true, true]);
  }
  await Promise.all(stores.map((store) => store.close()));
});

test("check and a store report an authority missing from the CA file", async () => {
  const url = tlsUrlOf(await server.createPlants([1n]), "rotated.pem");
  writeFileSync(folder.file("rotated.pem"), first.cert);
  await using store = closing(await openPostgresStore({ url }));
  expect((await runCommand(["check"], { DATABASE_URL: url })).exitCode).toBe(0);
  const next = createCertificate("fourth");
  await setServerCertificate(next);
  const words = "rotated.pem (sslrootcert in the database URL) has signed that of the server: self-signed certificate";
  await expect.poll(() => store.problem, { timeout: 15_000 }).toContain(words);
  const { exitCode, err } = await runCommand(["check"], { DATABASE_URL: url });
  expect({ exitCode, text: err.join("\n") }).toEqual({ exitCode: 1, text: expect.stringContaining(words) });
  writeFileSync(folder.file("rotated.pem"), next.cert);
  await expect.poll(() => store.problem, { timeout: 15_000 }).toBeUndefined();
  expect((await runCommand(["check"], { DATABASE_URL: url })).exitCode).toBe(0);
});

test.each([
  ["is not a certificate", (file: string) => writeFileSync(file, "half a certif")],
  ["has expired", (file: string) => writeFileSync(file, createCertificate("old", new Date(2022, 1)).cert)],
  ["is missing", (file: string) => rmSync(file)],
])("while the new authority %s, a store keeps trusting the previous one", async (_name, write) => {
  const url = await server.createPlants([1n, 2n]);
  const file = folder.file("kept.pem");
  writeFileSync(file, first.cert);
  await using store = closing(await openPostgresStore({ url: tlsUrlOf(url, "kept.pem") }));
  for (const id of [1n, 2n]) {
    write(file);
    await disconnectClients(url);
    await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    writeFileSync(file, first.cert);
  }
});
