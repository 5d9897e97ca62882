import { once } from "node:events";
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { bind, restoreFile, removeStaleSocket } from "../../src/engine/bind.ts";
import { createTempFolder } from "@protoport/testing/process";

/** The file at a path, before another process replaced it. */
function lookAt(path: string) {
  writeFileSync(path, "before");
  return lstatSync(path, { bigint: true });
}

test("a file in place of a stale socket is kept if it is a regular file", () => {
  using folder = createTempFolder();
  const path = folder.file("s");
  writeFileSync(path, "now");
  expect([removeStaleSocket(path, lookAt(folder.file("other"))), readFileSync(path, "utf8")]).toEqual([false, "now"]);
  expect(readdirSync(folder.path).toSorted()).toEqual(["other", "s"]);
});

test("a file in place of a stale socket is kept if it is a directory", () => {
  using folder = createTempFolder();
  const path = folder.file("s");
  mkdirSync(path);
  expect(removeStaleSocket(path, lookAt(folder.file("other")))).toBe(false);
  expect([lstatSync(path).isDirectory(), readdirSync(folder.path).toSorted()]).toEqual([true, ["other", "s"]]);
});

test("a file in place of a stale socket is not overwritten by restoreFile", () => {
  using folder = createTempFolder();
  const [aside, path] = [folder.file("aside"), folder.file("s")];
  writeFileSync(aside, "second");
  writeFileSync(path, "third");
  restoreFile(aside, path);
  expect([readFileSync(path, "utf8"), readdirSync(folder.path)]).toEqual(["third", ["s"]]);
});

test.each([{ name: "at an unused path" }, { name: "that replaces a stale socket" }])(
  "a Unix socket $name gets the configured mode",
  async ({ name }) => {
    using folder = createTempFolder();
    const path = folder.file("s");
    if (name === "that replaces a stale socket") {
      const dead = createServer().listen({ path: folder.file("dead") });
      await once(dead, "listening");
      renameSync(folder.file("dead"), path);
      dead.close();
    }
    const server = createServer();
    await bind(server, { path, socketMode: 0o640 });
    expect([server.listening, lstatSync(path).mode & 0o777]).toEqual([true, 0o640]);
    server.close();
  },
);

test("a server does not listen when the socket mode is invalid", async () => {
  using folder = createTempFolder();
  const server = createServer();
  await expect(bind(server, { path: folder.file("s"), socketMode: Number.NaN })).rejects.toThrow(RangeError);
  expect([server.listening, readdirSync(folder.path)]).toEqual([false, []]);
});

test("a server is bound to the configured host", async () => {
  const server = createServer();
  expect((await bind(server, { host: "0.0.0.0" })).address).toBe("0.0.0.0");
  server.close();
});

test.each([
  { name: "is shared with reusePort", reusePort: true, want: "shared" },
  { name: "is refused without reusePort", reusePort: false, want: "EADDRINUSE" },
])("the port of another server $name", async ({ reusePort, want }) => {
  const [first, second] = [createServer(), createServer()];
  const { port } = await bind(first, { reusePort });
  const outcome = await bind(second, { port, reusePort }).then(
    () => "shared",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );
  first.close();
  second.close();
  expect(outcome).toBe(want);
});
