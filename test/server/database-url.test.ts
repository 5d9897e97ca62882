import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { silentLog } from "../../packages/telemetry/src/logs/index.ts";
import { watchDatabaseUrl, readDatabaseUrlFile } from "../../src/server/database-url.ts";
import { openLogLines } from "../../packages/testing/src/operations/log-lines.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";

const limitBytes = 4096;
const longest = `postgres://db/${"p".repeat(limitBytes - "postgres://db/".length)}`;

describe("a database URL file", () => {
  test.each([
    { name: "with a line break at its end", text: "postgres://db\n", url: "postgres://db" },
    { name: "with a Windows line break at its end", text: "postgres://db\r\n", url: "postgres://db" },
    { name: "of the maximum size", text: longest, url: longest },
  ])("is read $name", ({ text, url }) => {
    using folder = createTempFolder();
    const urlFile = folder.file("url");
    writeFileSync(urlFile, text);
    expect(readDatabaseUrlFile(urlFile)).toEqual({ kind: "value", value: { kind: "postgres", url, urlFile } });
  });

  test.each([
    {
      name: "larger than the limit",
      pathOf: (larger: string) => larger,
      want: / is larger than 4096 bytes\)$/,
    },
    { name: "a device", pathOf: () => "/dev/null", want: / is not a regular file\)$/ },
    {
      name: "a named pipe without a writer",
      pathOf: (larger: string) => {
        execFileSync("mkfifo", [`${larger}.pipe`]);
        return `${larger}.pipe`;
      },
      want: / is not a regular file\)$/,
    },
    {
      name: "missing",
      pathOf: () => "/nowhere/url",
      want: / \(cannot read \/nowhere\/url: \/nowhere\/url or its parent directory does not exist\)/,
    },
  ])("is refused if it is $name", ({ pathOf, want }) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("larger"), `${longest}x`);
    const problems = [expect.stringMatching(want)];
    expect(readDatabaseUrlFile(pathOf(folder.file("larger")))).toEqual({ kind: "problems", problems });
  });

  test("may change its user and password; any other change is refused without logging the URL", async () => {
    using folder = createTempFolder();
    const urlFile = folder.file("url");
    writeFileSync(urlFile, "postgres://old:pw1@db/p\n");
    const { log, lines } = openLogLines("info");
    const { location, file } = await watchDatabaseUrl(
      { kind: "postgres", url: "postgres://old:pw1@db/p", urlFile },
      log,
    );
    const currentUrl = async (text: string): Promise<string | undefined> => {
      writeFileSync(urlFile, text);
      await file?.reload();
      return location.kind === "postgres" ? location.currentUrl?.() : undefined;
    };
    expect(await currentUrl("postgres://new:pw2@db/p\r\n")).toBe("postgres://new:pw2@db/p");
    const refused = [
      "postgres://new:thr",
      "postgres://new:pw3@db",
      "mysql://new:pw3@db/p",
      "postgres://new:se/cr?etPart=1@db/p",
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
    const followed = await watchDatabaseUrl({ kind: "postgres", url: "postgres://old:pw1@db/p", urlFile }, silentLog);
    followed.file?.close();
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
    await expect(watchDatabaseUrl(location, silentLog)).rejects.toThrow("cannot use DATABASE_URL_FILE: ");
  });
});

test.each([
  { kind: "memory" },
  { kind: "sqlite", path: "plants.db" },
  { kind: "postgres", url: "postgres://db/p" },
] as const)("watchDatabaseUrl watches no file for a $kind URL that is not from a file", async (location) => {
  expect(await watchDatabaseUrl(location, silentLog)).toEqual({ location });
});
