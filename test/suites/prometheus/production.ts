import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createIssuedCertificate } from "../../../protoport/testing/src/http/certificate.ts";
import { compileCache, projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { freePort } from "../../../protoport/testing/src/process/free-port.ts";
import { createTempFolder, type TempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { deployedFolder } from "../../../protoport/testing/src/telemetry/prometheus.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { type PostgresServer, startPostgres } from "../../support/plants/postgres-server.ts";
import { openShell } from "../../support/process/shell.ts";

/** An operator's shell in a service's directory, with a PostgreSQL with TLS. Dispose it with `await using`. */
export interface Production extends AsyncDisposable {
  readonly folder: TempFolder;
  readonly postgres: PostgresServer;
  /** A free port for a proxy's metrics, because the plant store uses the documented one. */
  readonly proxyPort: number;
  /** Runs documented commands, with the loopback address and free ports instead of the documented ones. */
  readonly run: (commands: string | undefined) => Promise<void>;
  /** Runs documented commands, and returns what they print. */
  readonly read: (commands: string | undefined) => Promise<string>;
}

/** Returns the blocks in docs/how-to/run-in-production.md. */
export const productionBlocks = (): readonly string[] =>
  blocksRunBy("test/suites/prometheus/run-in-production.test.ts").map(({ text }) => text);

/** Opens a shell with `plantstore`, a certificate for localhost and its authority, as the page requires them. */
export async function openProduction(): Promise<Production> {
  const folder = createTempFolder();
  const certificate = createIssuedCertificate("localhost");
  writeFileSync(folder.file("cert.pem"), certificate.cert);
  writeFileSync(folder.file("key.pem"), certificate.key);
  writeFileSync(folder.file("db-ca.pem"), certificate.authority);
  const path = installCommands(folder);
  const ports = [freePort(), freePort(), freePort(), freePort(), freePort(), freePort(), freePort()];
  const [databasePort = 0, port, metricsPort = 0, prometheusPort, port2, metricsPort2, proxyPort = 0] =
    await Promise.all(ports);
  copyPrometheusFiles(folder, metricsPort);
  const postgres = await startPostgres([], { tls: { certificate, port: databasePort } });
  // oxfmt-ignore
  const shell = openShell(folder.path, {
    ...compileCache, PATH: path, HOME: folder.path, PGHOST: postgres.socketFolder, PGPORT: String(databasePort),
    PGUSER: "tester", PGDATABASE: "postgres", CURL_CA_BUNDLE: folder.file("db-ca.pem"), PLANTSTORE_DRAIN_DELAY_MS: "0",
  });
  const run: Production["run"] = async (commands = "false") => {
    const here = commands
      .replaceAll("db.example:5432", `localhost:${databasePort}`)
      .replaceAll("plants.example:8443", `localhost:${port}`)
      .replaceAll("plants-2.example:8443", `localhost:${port2}`)
      .replace("HOST=0.0.0.0\nPORT=8443", `HOST=127.0.0.1\nPORT=${port}`)
      .replaceAll("PORT=8444", `PORT=${port2}`)
      .replaceAll("9465", String(metricsPort2))
      .replaceAll("9464", String(metricsPort))
      .replaceAll("127.0.0.1:9090", `127.0.0.1:${prometheusPort}`);
    await shell.run(here);
  };
  return {
    folder,
    postgres,
    proxyPort,
    run,
    read: async (commands = "false") => {
      await run(`{\n${commands}\n} > printed 2>&1`);
      return readFileSync(folder.file("printed"), "utf8");
    },
    [Symbol.asyncDispose]: async () => {
      await shell[Symbol.asyncDispose]();
      await postgres[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Writes programs `plantstore` and `protoport`, which node can run as well, and returns the PATH for them. */
export function installCommands(folder: TempFolder): string {
  mkdirSync(folder.file("bin"));
  const programs = { plantstore: "src/command/main.ts", protoport: "protoport/proxy/src/command/main.ts" };
  for (const [name, file] of Object.entries(programs)) {
    const main = JSON.stringify(join(projectFolder, file));
    writeFileSync(folder.file(`bin/${name}`), `#!/usr/bin/env node\nimport(${main});\n`, { mode: 0o755 });
  }
  symlinkSync(process.execPath, folder.file("bin/node"));
  return [folder.file("bin"), dirname(process.execPath), process.env["PATH"]].join(delimiter);
}

/** Copies the files in deploy/prometheus with another target, which is scraped every second. */
function copyPrometheusFiles(folder: TempFolder, metricsPort: number): void {
  mkdirSync(folder.file("deploy/prometheus"), { recursive: true });
  const scrape = readFileSync(join(deployedFolder, "prometheus.yml"), "utf8");
  const changed = scrape.replace(":9464", `:${metricsPort}`).replaceAll("15s", "1s");
  writeFileSync(folder.file("deploy/prometheus/prometheus.yml"), changed);
  writeFileSync(folder.file("deploy/prometheus/alerts.yml"), readFileSync(join(deployedFolder, "alerts.yml")));
}
