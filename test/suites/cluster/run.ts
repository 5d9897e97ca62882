import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findMissing } from "./requirements.ts";

// `npm run suite -- cluster` runs PostgreSQL under Patroni and etcd, and a plant store replica, on each of three
// machines, while machines are killed, frozen and cut off. At the end, all calls are checked against the tables.
//
// `-- --seconds 600` runs longer, and `-- --seed 42` makes other calls. `-- --fault "etcd"` injects only faults whose
// name contains "etcd", and `-- --logs FOLDER` keeps all programs' logs. `-- --workers 2` runs a Citus coordinator with
// one or two workers, without worker faults (`npx node test/suites/citus/build.ts` builds it once). Networks, processes
// and files are in separate namespaces, and not visible from outside.

const nodes = [1, 2, 3, 4, 5].map((number) => `10.77.0.${number} node-${number}\n`);
const hosts = `127.0.0.1 localhost\n${nodes.join("")}`;
const missing = findMissing();
for (const sentence of missing) process.stderr.write(`${sentence}\n`);
process.exitCode = missing.length > 0 ? 1 : runInNamespaces();

function runInNamespaces(): number {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-cluster-"));
  writeFileSync(`${folder}/hosts`, hosts);
  // The shell is process 1 in its namespace, and reaps the machines' orphaned processes.
  const script = `
    mkdir ${folder}/nodes && mount -t tmpfs -o mode=755 tmpfs ${folder}/nodes && chmod 755 ${folder} &&
    mount --bind ${folder}/hosts /etc/hosts &&
    "$@" & wait $!`;
  const scenario = [process.execPath, join(import.meta.dirname, "scenario.ts"), `${folder}/nodes`];
  const inNamespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const args = [...inNamespaces, "bash", "-c", script, "bash", ...scenario, ...process.argv.slice(2)];
  const { status } = spawnSync("unshare", args, { stdio: "inherit" });
  rmSync(folder, { recursive: true, force: true });
  return status ?? 1;
}
