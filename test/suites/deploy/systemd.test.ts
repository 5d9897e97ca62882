import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { createMissingStore } from "../../support/plants/sqlite-file.ts";
import { buildStep, createTempFolder, projectFolder, startProgram } from "@protoport/testing/process";
import { deletePlant, serveToken } from "../../support/process/serve-command.ts";

const unit = join(projectFolder, "deploy/systemd/plantstore.service");
const lines = readFileSync(unit, "utf8").split("\n");
const units = [unit, join(projectFolder, "protoport/deploy/protoport.service")];

test.each(units)("%s passes systemd-analyze verify", async (file) => {
  using folder = createTempFolder();
  const copy = folder.file(basename(file));
  // systemd-analyze requires that the program exists.
  writeFileSync(copy, readFileSync(file, "utf8").replace("/usr/local/bin/node", process.execPath));
  expect(await buildStep("systemd-analyze", ["verify", "--man=no", copy])).toBe("");
});

// On a scale to 10, 1.1 remains for the network, AF_UNIX for a socket, and writable executable memory, which V8 needs.
test.each(units)("systemd-analyze rates the exposure of %s at 1.1 or less", async (file) => {
  await buildStep("systemd-analyze", ["security", "--offline=true", "--threshold=11", "--no-pager", file]);
});

/** The system calls that `SystemCallFilter` allows. */
function allowedCalls(): Set<string> {
  const filters = lines.flatMap((line) => /^SystemCallFilter=(.*)$/.exec(line)?.[1] ?? []);
  const allowed = new Set<string>();
  for (const filter of filters) {
    const calls = filter.replace("~", "").split(" ").flatMap(callsOf);
    for (const call of calls)
      if (filter.startsWith("~")) allowed.delete(call);
      else allowed.add(call);
  }
  return allowed;
}

function callsOf(name: string): string[] {
  if (!name.startsWith("@")) return [name];
  const printed = execFileSync("systemd-analyze", ["syscall-filter", "--no-pager", name], { encoding: "utf8" });
  return [...printed.matchAll(/^ +([@a-z_]\S*)$/gm)].map(([, member = ""]) => member).flatMap(callsOf);
}

test("a server makes no system calls that the unit forbids", async () => {
  using folder = createTempFolder();
  createMissingStore(folder.file("plants.db"));
  const args = ["-f", "-qq", "-o", "calls", process.execPath, join(projectFolder, "src/command/main.ts"), "serve"];
  await using server = startProgram("strace", args, folder.path, {
    PORT: "0",
    DATABASE_URL: "sqlite:plants.db",
    PLANTSTORE_TOKENS: serveToken,
    PLANTSTORE_DRAIN_DELAY_MS: "0",
    PLANTSTORE_ADMIN_ADDRESS: "0",
  });
  const [, pid = ""] = await server.find(/"pid":(\d+)/);
  const [, port = ""] = await server.find(/"port":(\d+),"protocols"/);
  expect(await deletePlant(`http://127.0.0.1:${port}`, 1)).toBe(400);
  process.kill(Number(pid), "SIGTERM");
  expect(await server.end()).toBe(0);
  const made = readFileSync(folder.file("calls"), "utf8").matchAll(/^\d+ +([a-z]\w*)\(/gm);
  // SQLite gives a new file its folder's owner, but only as root.
  const allowed = allowedCalls().add("fchown");
  expect([...new Set([...made].map(([, call = ""]) => call))].filter((call) => !allowed.has(call))).toEqual([]);
  expect(allowed.has("accept4") && !allowed.has("mount") && !allowed.has("setuid")).toBe(true);
});
