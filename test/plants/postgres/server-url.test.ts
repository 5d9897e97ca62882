import { writeFileSync } from "node:fs";
import type { ClientConfig } from "pg";
import { describe, expect, test } from "vitest";
import { StoreOpenError } from "../../../src/plants/store-open-error.ts";
import { readServerUrl } from "../../../src/plants/postgres/server-url.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

describe("reading the URL of a server", () => {
  test.each([
    {
      url: "postgres://ann:s%40cret@db.example:6543/plants",
      name: "db.example:6543/plants",
      way: { host: "db.example", port: 6543, user: "ann", password: "s@cret", database: "plants" },
    },
    { url: "postgresql://db/plants", name: "db:5432/plants", way: { host: "db", port: 5432, database: "plants" } },
    { url: "postgres://[::1]:1/p", name: "[::1]:1/p", way: { host: "::1", port: 1 } },
    {
      url: "postgres:///p?host=/run/pg&port=7&user=u&password=w",
      name: "/run/pg:7/p",
      way: { host: "/run/pg", port: 7, user: "u", password: "w" },
    },
    {
      url: "postgres://db/p?application_name=a&options=-c%20x=1",
      name: "db:5432/p",
      way: { application_name: "a", options: "-c x=1" },
    },
    // A server that has vanished is noticed without waiting for the system's two hours.
    { url: "postgres://db/p", name: "db:5432/p", way: { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } },
  ])("takes $url", ({ url, name, way }) => {
    const server = readServerUrl(url);
    expect(server.name).toBe(name);
    expect(server.hosts[0]?.ways[0]).toMatchObject(way);
  });

  test.each([
    { url: "mysql://db/p", says: "the database URL must be postgres://user:password@host:port/database" },
    { url: "db/p", says: "the database URL must be postgres://user:password@host:port/database" },
    {
      url: "postgres://ann:secret@db:99999/p",
      says: "the database URL must be postgres://user:password@host:port/database",
    },
    { url: "postgres://ann:secret%zz@db/p", says: "the database URL has a bad percent escape" },
    { url: "postgres://ann:secret@db/p?sslmod=require", says: "unknown in the database URL: sslmod" },
    { url: "postgres://ann:secret@db/p?sslmod=require&x=1", says: "unknown in the database URL: sslmod, x" },
    {
      url: "postgres://ann:secret@a,b:7/p",
      says: "in the database URL, the port of several hosts is the parameter port",
    },
    {
      url: "postgres://ann:secret@db/p?target_session_attrs=any",
      says: "target_session_attrs in the database URL must be read-write: plants are deleted there",
    },
    { url: "postgres://ann:secret@db/p?sslmode=yes", says: 'sslmode in the database URL must not be "yes"' },
    {
      url: "postgres://ann:secret@db/p?sslmode=verify-ca&sslrootcert=/nowhere/ca.pem",
      says: "cannot read /nowhere/ca.pem, which the database URL names",
    },
  ])("refuses $url, and says nothing of the password", ({ url, says }) => {
    expect(() => readServerUrl(url)).toThrow(StoreOpenError);
    expect(() => readServerUrl(url)).toThrow(new StoreOpenError(says));
  });

  test.each([
    { url: "postgres://a,b/p?port=7&target_session_attrs=primary", hosts: ["a", "b"], port: 7, name: "a,b:7/p" },
    {
      url: "postgres:///p?host=/run/a,/run/b&target_session_attrs=read-write",
      hosts: ["/run/a", "/run/b"],
      port: 5432,
      name: "/run/a,/run/b:5432/p",
    },
  ])("takes several hosts in $url", ({ url, hosts, port, name }) => {
    const server = readServerUrl(url);
    expect(server.name).toBe(name);
    expect(server.hosts.map(({ ways }) => ways[0])).toMatchObject(hosts.map((host) => ({ host, port })));
  });

  // postgresql.org/docs/current/libpq-ssl.html, table 34.1.
  test.each([
    { mode: "disable", ways: ["cleartext"] },
    { mode: "allow", ways: ["cleartext", "any certificate"] },
    { mode: "prefer", ways: ["any certificate", "cleartext"] },
    { mode: undefined, ways: ["any certificate", "cleartext"] },
    { mode: "require", ways: ["any certificate"] },
    { mode: "verify-ca", ways: ["a certificate of the authority"] },
    { mode: "verify-full", ways: ["the host's certificate"] },
  ])("connects as libpq does with sslmode=$mode", ({ mode, ways }) => {
    const url = mode === undefined ? "postgres://db/p" : `postgres://db/p?sslmode=${mode}`;
    expect(waysOf(url).map(({ ssl }) => tlsWords(ssl))).toEqual(ways);
  });

  test("asks for the authority's signature when require is given one", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("ca.pem"), "pem");
    const url = `postgres://db/p?sslmode=require&sslrootcert=${folder.file("ca.pem")}`;
    const [way] = waysOf(url);
    expect(tlsWords(way?.ssl)).toBe("a certificate of the authority");
    expect(way?.ssl).toMatchObject({ ca: "pem" });
  });

  test("shows the server the certificate that it is given, and its key", () => {
    using folder = createTempFolder();
    for (const name of ["sslcert", "sslkey"]) writeFileSync(folder.file(name), name);
    const [way] = waysOf(`postgres://db/p?sslcert=${folder.file("sslcert")}&sslkey=${folder.file("sslkey")}`);
    expect(way?.ssl).toMatchObject({ cert: "sslcert", key: "sslkey" });
  });

  test("speaks cleartext over a Unix socket, where a server offers nothing else", () => {
    const ways = waysOf("postgres:///p?host=/run/pg&sslmode=require");
    expect(ways.map(({ ssl }) => tlsWords(ssl))).toEqual(["cleartext"]);
  });
});

/** The ways to the one host of a URL. */
function waysOf(url: string): readonly ClientConfig[] {
  const { hosts } = readServerUrl(url);
  expect(hosts).toHaveLength(1);
  return hosts.flatMap(({ ways }) => ways);
}

function tlsWords(ssl: unknown): string {
  if (ssl === false) return "cleartext";
  const { rejectUnauthorized, checkServerIdentity } = Object(ssl);
  if (rejectUnauthorized === false) return "any certificate";
  const problem = checkServerIdentity("db", { subject: { CN: "other" }, subjectaltname: "DNS:other" });
  return problem === undefined ? "a certificate of the authority" : "the host's certificate";
}
