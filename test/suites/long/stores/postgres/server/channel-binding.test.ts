import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { createCertificate } from "@protoport/testing/http";
import { closing, freePort } from "@protoport/testing/process";
import { type PostgresServer, runSql, startPostgres } from "../../../../../support/plants/postgres-server.ts";

let server: PostgresServer;
let port: number;
beforeAll(async () => {
  port = await freePort();
  server = await startPostgres([], { tls: { certificate: createCertificate("PostgreSQL"), port } });
  const url = await server.createSchema();
  const sql = `CREATE ROLE scram LOGIN PASSWORD 'secret'; CREATE ROLE plain LOGIN PASSWORD 'secret';
     SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 'secret'`;
  await runSql(url, sql);
  const rules = join(server.socketFolder, "data/pg_hba.conf");
  const own = ["scram scram-sha-256", "plain password", "hashed md5"].map((rule) => {
    const [user, method] = rule.split(" ");
    return `host all ${user} 127.0.0.1/32 ${method}\n`;
  });
  writeFileSync(rules, `${own.join("")}${readFileSync(rules, "utf8")}`);
  await server.stop("fast");
  await server.start();
});
afterAll(() => server[Symbol.asyncDispose]());

async function connectAs(user: string, parameters: string): Promise<unknown> {
  const url = `postgres://${user}:secret@127.0.0.1:${port}/postgres?${parameters}`;
  await using session = closing(new Session(readServerUrl(url)));
  return await session.query("SELECT current_user");
}

const binding = ["sslmode=require&channel_binding=require", "channel_binding=require", "channel_binding=prefer"];
test.each(binding)("a URL with %s accepts a server with SCRAM over TLS", async (parameters) => {
  await expect(connectAs("scram", parameters)).resolves.toEqual([["scram"]]);
  await expect(connectAs("scram", parameters)).resolves.toEqual([["scram"]]);
});

test.each([
  { user: "scram", parameters: "&sslmode=disable", reason: "offers only SCRAM-SHA-256" },
  { user: "plain", parameters: "", reason: "requests the password" },
  { user: "hashed", parameters: "", reason: "requests an MD5 hash of the password" },
  { user: "tester", parameters: "", reason: "does not authenticate the user" },
])("channel_binding=require refuses a server that $reason, unlike prefer", async ({ user, parameters, reason }) => {
  const connecting = connectAs(user, `channel_binding=require${parameters}`);
  await expect(connecting).rejects.toThrow(`channel_binding is require, but the server ${reason}`);
  await expect(connectAs(user, `channel_binding=prefer${parameters}`)).resolves.toEqual([[user]]);
});
