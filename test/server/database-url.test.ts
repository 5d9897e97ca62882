import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { silentLog } from "@protoport/telemetry/logs";
import { readDatabaseUrl, readDatabaseUrlFile, watchDatabase } from "../../src/server/database-url.ts";
import { readServerUrl } from "../../src/stores/index.ts";
import { createCertificate } from "@protoport/testing/http";
import { createTempFolder, openLogLines } from "@protoport/testing/process";

const limitBytes = 4096;
const longest = `postgres://db/${"p".repeat(limitBytes - "postgres://db/".length)}`;

describe("a database URL file", () => {
  test.each([
    { name: "with a line break at its end", text: "postgres://db\n", url: "postgres://db" },
    { name: "with a Windows line break at its end", text: "postgres://db\r\n", url: "postgres://db" },
    { name: "of the maximum size", text: longest, url: longest },
  ])("$name is read", ({ text, url }) => {
    using folder = createTempFolder();
    const urlFile = folder.file("url");
    writeFileSync(urlFile, text);
    expect(readDatabaseUrlFile(urlFile)).toEqual({ kind: "value", value: { kind: "postgres", url, urlFile } });
  });

  test.each([
    ["larger than the limit", (larger: string) => larger, / is larger than 4096 bytes\)$/],
    ["a device", () => "/dev/null", / is not a regular file\)$/],
    [
      "a named pipe without a writer",
      (larger: string) => {
        execFileSync("mkfifo", [`${larger}.pipe`]);
        return `${larger}.pipe`;
      },
      / is not a regular file\)$/,
    ],
    [
      "missing",
      () => "/nowhere/url",
      / \(cannot read \/nowhere\/url: \/nowhere\/url or its parent directory does not exist\)/,
    ],
  ])("that is %s is refused", (_name, pathOf, want) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("larger"), `${longest}x`);
    const problems = [expect.stringMatching(want)];
    expect(readDatabaseUrlFile(pathOf(folder.file("larger")))).toEqual({ kind: "problems", problems });
  });

  test("may change only its user and password while a server runs", async () => {
    using folder = createTempFolder();
    const urlFile = folder.file("url");
    writeFileSync(urlFile, "postgres://old:pw1@db/p\n");
    const { log, lines } = openLogLines("info");
    const {
      location,
      files: [file],
    } = await watchDatabase({ kind: "postgres", url: "postgres://old:pw1@db/p", urlFile }, log);
    const currentUrl = async (text: string): Promise<string | undefined> => {
      writeFileSync(urlFile, text);
      await file?.reload();
      return location.kind === "postgres" ? location.currentUrl?.() : undefined;
    };
    expect(await currentUrl("postgres://new:pw2@db/p\r\n")).toBe("postgres://new:pw2@db/p");
    // oxfmt-ignore
    const refused = [
      "postgres://new:thr", "postgres://new:pw3@db", "mysql://new:pw3@db/p", "postgres://new:se/cr?etPart=1@db/p",
      "postgres://new:se/cr?sslmode=etPart@db/p",
    ];
    for (const text of refused) {
      expect(await currentUrl(text)).toBe("postgres://new:pw2@db/p");
      expect(await currentUrl("postgres://new:pw2@db/p\r\n")).toBe("postgres://new:pw2@db/p");
    }
    expect(await currentUrl("postgres://new:pw4@db/p")).toBe("postgres://new:pw4@db/p");
    file?.close();
    const reloaded = "database URL file reloaded";
    expect(lines().map(({ msg }) => msg)).toEqual([
      reloaded,
      ...refused.flatMap(() => [
        "database URL file not reloaded, keeping the previous one",
        "database URL file reverted to the content in use",
      ]),
      reloaded,
    ]);
    expect(JSON.stringify(lines())).not.toMatch(/pw|thr|etPart/);
  });

  test("is read again for each connection", async () => {
    using folder = createTempFolder();
    const urlFile = folder.file("url");
    writeFileSync(urlFile, "postgres://old:pw1@db/p");
    const followed = await watchDatabase({ kind: "postgres", url: "postgres://old:pw1@db/p", urlFile }, silentLog);
    for (const file of followed.files) file.close();
    const currentUrl = (): unknown => followed.location.kind === "postgres" && followed.location.currentUrl?.();
    writeFileSync(urlFile, "postgres://new:pw2@db/p\n");
    expect(currentUrl()).toBe("postgres://new:pw2@db/p");
    writeFileSync(urlFile, "postgres://new:pw3@other/p");
    expect(currentUrl()).toBe("postgres://new:pw2@db/p");
    rmSync(urlFile);
    expect(currentUrl()).toBe("postgres://new:pw2@db/p");
  });

  test("is refused if it names another database than the configuration", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("url"), "postgres://other/p");
    const location = { kind: "postgres", url: "postgres://db/p", urlFile: folder.file("url") } as const;
    await expect(watchDatabase(location, silentLog)).rejects.toThrow("cannot use DATABASE_URL_FILE: ");
  });
});

describe("the certificates of a database URL", () => {
  const [authority, renewed, client, other] = ["a", "b", "c", "d"].map((name) => createCertificate(name));
  const expired = createCertificate("expired", new Date("2021-01-01"));
  const future = createCertificate("future", new Date("2099-12-31"), new Date("2090-01-01"));
  // oxfmt-ignore
  test.each([
    { name: "a file that is not PEM", file: "ca.pem", text: "not a certificate",
      problem: /ca\.pem.*: the file must contain certificates/ },
    { name: "half a bundle", file: "ca.pem", text: `${renewed?.cert}${authority?.cert.slice(0, 200)}`,
      problem: /a PEM block has no end/ },
    { name: "an expired authority", file: "ca.pem", text: expired.cert, problem: /ca\.pem.*: no certificate is valid/ },
    { name: "a future authority", file: "ca.pem", text: future.cert, problem: /ca\.pem.*: no certificate is valid/ },
    { name: "a key instead of an authority", file: "ca.pem", text: client?.key ?? "",
      problem: /ca\.pem.*: the file must contain certificates/ },
    { name: "a certificate without its key", file: "cert.pem", text: other?.cert ?? "",
      problem: /cert\.pem and .*key\.pem.*: the private key does not belong/ },
    { name: "a key without its certificate", file: "key.pem", text: other?.key ?? "",
      problem: /cert\.pem and .*key\.pem.*: the private key does not belong/ },
    { name: "an empty key", file: "key.pem", text: "",
      problem: /key\.pem.*: the files must be a PEM certificate and its/ },
  ])("stay in use when $name replaces a valid file", async ({ file, text, problem }) => {
    using folder = createTempFolder();
    const contents: Record<string, string> = {
      "ca.pem": authority?.cert ?? "",
      "cert.pem": client?.cert ?? "",
      "key.pem": client?.key ?? "",
    };
    for (const [name, content] of Object.entries(contents)) writeFileSync(folder.file(name), content);
    const paths = Object.keys(contents).map((name) => folder.file(name));
    const url = `postgres://db/p?sslrootcert=${paths[0]}&sslcert=${paths[1]}&sslkey=${paths[2]}`;
    const { attempts } = readServerUrl(url);
    const server = readServerUrl(url);
    const { log, lines } = openLogLines("info");
    const watched = await watchDatabase({ kind: "postgres", url }, log);
    expect(watched.files).toHaveLength(1);
    const succeeded = (): unknown[] => watched.files.map(({ lastReload }) => lastReload);
    writeFileSync(folder.file(file), text);
    await watched.files[0]?.reload();
    expect(succeeded()).toMatchObject([{ succeeded: false, path: paths.join(", ") }]);
    expect(JSON.stringify(server.attempts[0]?.ssl)).toBe(JSON.stringify(attempts[0]?.ssl));
    // A second change, to valid content, is used by the store and reported by the watch.
    writeFileSync(folder.file(file), contents[file] ?? "");
    writeFileSync(folder.file("ca.pem"), `${authority?.cert}${renewed?.cert}`);
    await watched.files[0]?.reload();
    expect(succeeded()).toMatchObject([{ succeeded: true }]);
    expect(server.attempts[0]?.ssl).toMatchObject({ ca: `${authority?.cert}${renewed?.cert}` });
    for (const each of watched.files) each.close();
    expect(lines().map(({ msg }) => msg)).toEqual([
      "certificates of the database URL not reloaded, keeping the previous one",
      "certificates of the database URL reloaded",
    ]);
    expect(lines()[0]).toMatchObject({ errorCode: "ERR_FILE_REFUSED", problems: [expect.stringMatching(problem)] });
  });

  test("may be in one file with the key and comments", () => {
    using folder = createTempFolder();
    const file = folder.file("client.pem");
    writeFileSync(file, `# client\n${client?.key}\n# its certificate\n${client?.cert}`);
    expect(readDatabaseUrl(`postgres://db/p?sslcert=${file}&sslkey=${file}`)).toMatchObject({ kind: "value" });
  });

  test("are refused at the start when they are invalid", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("ca.pem"), "not a certificate");
    const url = `postgres://db/p?sslrootcert=${folder.file("ca.pem")}&sslmode=verify-full`;
    expect(readDatabaseUrl(url)).toEqual({
      kind: "problems",
      problems: [expect.stringMatching(/ca\.pem.*: the file must contain certificates in PEM\)$/)],
    });
    // Without TLS, they are not read.
    expect(readDatabaseUrl(url.replace("verify-full", "disable"))).toMatchObject({ kind: "value" });
  });
});

test.each([
  { kind: "memory" },
  { kind: "sqlite", path: "plants.db" },
  { kind: "postgres", url: "postgres://db/p" },
] as const)("watchDatabase watches no file for a $kind URL without files", async (location) => {
  expect(await watchDatabase(location, silentLog)).toEqual({ location, files: [] });
});
