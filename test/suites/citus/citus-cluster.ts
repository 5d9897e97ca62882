import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runSql, serverOwner } from "../../support/plants/postgres-server.ts";
import { citusBuild, programsFolder } from "./build.ts";
import { type CitusNode, startNode } from "./citus-node.ts";

/** A separate coordinator and two workers for a test. */
export interface CitusCluster extends AsyncDisposable {
  readonly coordinator: CitusNode;
  readonly workers: readonly CitusNode[];
  /** Creates an empty schema whose tables are distributed over this many shards, and returns its URL. */
  createSchema(shards?: number): Promise<string>;
  /** Sets whether Citus delegates functions to workers, which after a node change takes all nodes' knowledge. */
  delegate(may: boolean): Promise<void>;
}

/** Starts a cluster. @throws Error when Citus was not built */
export async function startCitus(): Promise<CitusCluster> {
  const built = citusBuild();
  if (built === undefined) throw new Error("Citus is not built; run `node test/suites/citus/build.ts`");
  const folder = mkdtempSync(join(tmpdir(), "plantstore-citus-"));
  // The servers run as another user, who may not be able to read the home directory.
  cpSync(join(built, "usr"), join(folder, "usr"), { recursive: true, verbatimSymlinks: true });
  const programs = join(folder, programsFolder);
  const owner = serverOwner();
  if (owner !== undefined) execFileSync("chown", [`${owner.uid}:${owner.gid}`, folder]);
  const start = (name: string): Promise<CitusNode> => startNode(programs, folder, name);
  const [coordinator, ...workers] = await Promise.all([start("coordinator"), start("worker-1"), start("worker-2")]);
  const nodes = [coordinator, ...workers];
  for (const node of nodes) await runSql(node.url, "CREATE EXTENSION citus");
  const { url, port: ownPort } = coordinator;
  await runSql(url, `SELECT citus_set_coordinator_host('127.0.0.1', ${ownPort})`);
  for (const { port } of workers) await runSql(url, `SELECT citus_add_node('127.0.0.1', ${port})`);
  let schemas = 0;
  return {
    coordinator,
    workers,
    createSchema: async (shards = 8) => {
      const name = `plants_${++schemas}`;
      await runSql(url, `CREATE SCHEMA ${name}`);
      return `${url}&options=${encodeURIComponent(`-csearch_path=${name} -ccitus.shard_count=${shards}`)}`;
    },
    delegate: async (may) =>
      void (await runSql(url, `UPDATE pg_dist_node SET metadatasynced = ${may} WHERE groupid > 0`)),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
