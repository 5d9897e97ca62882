import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { listTokens, revokeToken } from "../../../src/operators/auth/token-hashes-file.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

const [ci, cd] = ["a", "b"].map((digit, n) => `sha256:${digit.repeat(64)} c${"id"[n]} - -`);

test("a token is revoked by its name, and a name that none has is told", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  writeFileSync(file, `${ci}\n# ours\n${cd}\n`);
  expect(await listTokens(file)).toMatchObject({ kind: "value", value: [{ name: "ci" }, { name: "cd" }] });
  expect(await revokeToken(file, "ci")).toEqual({ kind: "value", value: undefined });
  expect(await revokeToken(file, "ci")).toEqual({ kind: "problems", problems: ["no token is named ci"] });
  expect(readFileSync(file, "utf8")).toBe(`# ours\n${cd}\n`);
  expect(readdirSync(folder.path)).toEqual(["tokens"]);
});
