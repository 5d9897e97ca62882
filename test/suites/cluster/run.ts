import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findMissing } from "./requirements.ts";

// `npm run suite -- cluster`: three machines with PostgreSQL under Patroni and etcd, and a replica of the plant store on
// each, while machines are killed, frozen and cut off. Every call is judged by the tables at the end.
//
// `-- --seconds 600` for longer, `-- --seed 42` for other calls, `-- --fault "etcd"` for the faults with that in their
// name alone, `-- --logs FOLDER` for the logs of all programs, `-- --workers 2` to have these machines keep the coordinator
// of a Citus with so many workers, two at most, which nothing happens to (`node test/suites/citus/build.ts` builds it once).
// Nothing of it is visible outside: networks, processes and files are in namespaces of their own.

const nodes = [1, 2, 3, 4, 5].map((number) => `10.77.0.${number} node-${number}\n`);
const hosts = `127.0.0.1 localhost\n${nodes.join("")}`;

const missing = findMissing();
for (const sentence of missing) process.stderr.write(`${sentence}\n`);
process.exitCode = missing.length > 0 ? 1 : runInNamespaces();

function runInNamespaces(): number {
  const folder = mkdtempSync(join(tmpdir(), "plantstore-cluster-"));
  writeFileSync(`${folder}/hosts`, hosts);
  // The shell is process 1 of its namespace, and takes over what the machines leave behind.
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
