import { readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { expect, test } from "vitest";
import { appendTokenHash, listTokens, revokeToken } from "../src/token-hashes-file.ts";
import type { StaticToken } from "../src/static-token.ts";
import { createTempFolder } from "@protoport/testing/process";

const [ci, cd] = ["a", "b"].map((digit, n) => `sha256:${digit.repeat(64)} c${"id"[n]} - -`);

test("revokeToken removes only the line with the name", async () => {
  using folder = createTempFolder();
  const file = folder.write("tokens", `${ci}\n# ours\n${cd}\n`);
  expect(await listTokens(file)).toMatchObject({ kind: "value", value: [{ name: "ci" }, { name: "cd" }] });
  expect(await revokeToken(file, "ci")).toEqual({ kind: "value", value: undefined });
  expect(await revokeToken(file, "ci")).toEqual({ kind: "problems", problems: ["no token is named ci"] });
  expect([readFileSync(file, "utf8"), readdirSync(folder.path)]).toEqual([`# ours\n${cd}\n`, ["tokens"]]);
  expect(folder.open()).toEqual([]);
});

test("appendTokenHash does not replace a file that cannot be read", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  // A link to itself is unreadable for root too, unlike a file without permissions.
  symlinkSync("tokens", file);
  const token: StaticToken = { digest: "a".repeat(64), name: "ci", scopes: "all", expiresAtMs: undefined };
  expect(await appendTokenHash(file, token)).toMatchObject({ kind: "problems" });
  expect([readlinkSync(file), readdirSync(folder.path)]).toEqual(["tokens", ["tokens"]]);
});

test("revokeToken syncs the file before and the directory after the rename", async () => {
  using folder = createTempFolder();
  const file = folder.write("tokens", `${ci}\n${cd}\n`);
  const steps: string[] = [];
  const handle = await fs.open(file);
  const handles: object = Object.getPrototypeOf(handle);
  await handle.close();
  const methods = ["writeFile", "sync"].map((name) => [name, Reflect.get(handles, name)] as const);
  const { rename } = fs;
  for (const [name, method] of methods)
    Reflect.set(handles, name, function recorded(this: object, ...args: unknown[]): unknown {
      steps.push(name);
      return Reflect.apply(method, this, args);
    });
  fs.rename = (...paths) => {
    steps.push("rename");
    return rename(...paths);
  };
  syncBuiltinESMExports();
  try {
    await revokeToken(file, "ci");
  } finally {
    for (const [name, method] of methods) Reflect.set(handles, name, method);
    fs.rename = rename;
    syncBuiltinESMExports();
  }
  expect(steps).toEqual(["writeFile", "sync", "rename", "sync"]);
});
