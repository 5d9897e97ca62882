import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { createIssuedCertificate } from "../../../packages/testing/src/carriers/certificate.ts";
import { compileCache, projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { freePort } from "../../../packages/testing/src/process/free-port.ts";
import { createTempFolder, type TempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { deployedFolder } from "../../../packages/testing/src/telemetry/prometheus.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { startPostgres } from "../../support/plants/postgres-server.ts";
import { openShell } from "../../support/process/shell.ts";

// Runs the commands of docs/how-to/run-in-production.md in their order in one shell, with a PostgreSQL with TLS. Hosts are
// replaced by the loopback address, and ports by free ones.

const timeout = 300_000;

const [createDatabase, writeSettings, createTables, createToken, start, deletePlant, alert, rotate, backUp, restore] =
  blocksRunBy("test/suites/prometheus/run-in-production.test.ts").map(({ text }) => text);

/** Writes an executable file `plantstore`, which node can run as well. */
function installCommand(folder: TempFolder): void {
  mkdirSync(folder.file("bin"));
  const main = JSON.stringify(join(projectFolder, "src/command/main.ts"));
  writeFileSync(folder.file("bin/plantstore"), `#!/usr/bin/env node\nimport(${main});\n`, { mode: 0o755 });
  symlinkSync(process.execPath, folder.file("bin/node"));
}

/** Copies the files of deploy/prometheus with another target, which is scraped every second. */
function copyPrometheusFiles(folder: TempFolder, metricsPort: number): void {
  mkdirSync(folder.file("deploy/prometheus"), { recursive: true });
  const scrape = readFileSync(join(deployedFolder, "prometheus.yml"), "utf8");
  const changed = scrape.replace(":9464", `:${metricsPort}`).replaceAll("15s", "1s");
  writeFileSync(folder.file("deploy/prometheus/prometheus.yml"), changed);
  writeFileSync(folder.file("deploy/prometheus/alerts.yml"), readFileSync(join(deployedFolder, "alerts.yml")));
}

test(
  "the commands of docs/how-to/run-in-production.md set up, watch, back up and restore a server",
  { timeout },
  async () => {
    using folder = createTempFolder();
    const certificate = createIssuedCertificate("localhost");
    writeFileSync(folder.file("cert.pem"), certificate.cert);
    writeFileSync(folder.file("key.pem"), certificate.key);
    writeFileSync(folder.file("db-ca.pem"), certificate.authority);
    installCommand(folder);
    const [databasePort, port, metricsPort, prometheusPort] = await Promise.all([
      freePort(),
      freePort(),
      freePort(),
      freePort(),
    ]);
    copyPrometheusFiles(folder, metricsPort);
    await using postgres = await startPostgres([], { tls: { certificate, port: databasePort } });

    await using shell = openShell(folder.path, {
      ...compileCache,
      PATH: [folder.file("bin"), dirname(process.execPath), process.env["PATH"]].join(delimiter),
      HOME: folder.path,
      PGHOST: postgres.socketFolder,
      PGPORT: String(databasePort),
      PGUSER: "tester",
      PGDATABASE: "postgres",
      CURL_CA_BUNDLE: folder.file("db-ca.pem"),
      PLANTSTORE_DRAIN_DELAY_MS: "0",
    });
    const run = async (commands = "false"): Promise<void> => {
      const here = commands
        .replaceAll("db.example:5432", `localhost:${databasePort}`)
        .replaceAll("plants.example:8443", `localhost:${port}`)
        .replace("HOST=0.0.0.0\nPORT=8443", `HOST=127.0.0.1\nPORT=${port}`)
        .replaceAll("9464", String(metricsPort))
        .replaceAll("127.0.0.1:9090", `127.0.0.1:${prometheusPort}`);
      await shell.run(here);
    };
    const plants = async (): Promise<readonly string[]> => {
      await run("plantstore export > exported");
      return readFileSync(folder.file("exported"), "utf8").trimEnd().split("\n");
    };

    await run(createDatabase);
    await run(writeSettings);
    await run(createTables);
    expect(await plants()).toHaveLength(1000);
    await run(createToken);
    await run(start);
    await run(deletePlant);
    expect(await plants()).not.toContain("7");

    await run(alert);
    const query = "http://127.0.0.1:9090/api/v1/query?query=gateway_ready";
    await run(`until curl --silent '${query}' | grep -q '"1"'; do sleep 0.1; done`);

    await run(rotate);
    const call = 'curl --silent -X DELETE -H "Authorization: Bearer $TOKEN" https://plants.example:8443/plants/7';
    await run(`until ${call} | grep -q '"error":16'; do sleep 0.1; done`);

    await run(backUp);
    await run(`TOKEN=$(plantstore token create third --scope plants:delete --file tokens)
until ${call} | grep -q '"error":5'; do sleep 0.1; done
${call.replace("/7", "/8")}`);
    expect(await plants()).not.toContain("8");
    await run(restore);
    expect(await plants()).toHaveLength(999);
    await run(start);
  },
);
