import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createIssuedCertificate } from "../../../packages/testing/src/carriers/certificate.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { openClient } from "../../support/plants/postgres-server.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { openProduction, type Production, productionBlocks } from "./production.ts";

// Runs the commands of docs/how-to/runbooks/ at a server that docs/how-to/run-in-production.md has set up.

const blocks = Map.groupBy(blocksRunBy("test/suites/prometheus/runbooks.test.ts"), ({ page }) => page);
const folder = "docs/how-to/runbooks";

const blocksOf = (name: string): readonly string[] =>
  (blocks.get(`${folder}/${name}.md`) ?? []).map(({ text }) => text);

/** A call of the plant store with a credential. */
const call = (token: string, id: number): string =>
  `curl --silent -X DELETE -H "Authorization: Bearer ${token}" https://plants.example:8443/plants/${id}`;

/** Starts a proxy with descriptors and a certificate, like the pages of its alerts. */
const startProxy = `cat > proxy.yaml <<EOF
listen: { port: 0, tls: { cert: cert.pem, key: key.pem } }
admin: { port: 9464 }
upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: set.binpb }]
EOF
plantstore-proxy --config proxy.yaml > proxy.log 2>&1 &
PROXY=$!
until grep -q serves proxy.log; do sleep 0.1; done`;

describe("the commands of", () => {
  let production: Production;
  /** Replaces the documented port of metrics with that of the proxy. */
  const ofProxy = (commands: string): string => commands.replaceAll("9464", String(production.proxyPort));
  beforeAll(async () => {
    production = await openProduction();
    const { run, read, folder: directory } = production;
    execFileSync("npx", ["buf", "build", "-o", directory.file("set.binpb")], { cwd: projectFolder });
    const [createDatabase, writeSettings, createTables, createToken, start] = productionBlocks();
    for (const block of [createDatabase, writeSettings, createTables, createToken, start]) await run(block);
    await read(`${call("$TOKEN", 1)}\n${call("wrong", 1)}`);
    await run(ofProxy(startProxy));
  }, 300_000);
  afterAll(async () => await production[Symbol.asyncDispose]());

  test.each<{ alert: string; prints: readonly RegExp[] }>([
    { alert: "plantstore-down", prints: [/"msg":"call"[^]*the configuration is valid/] },
    { alert: "plantstore-not-ready", prints: [/"status":"ready"/] },
    { alert: "plantstore-errors", prints: [/ERR_TOKEN_INVALID/] },
    { alert: "plantstore-overloaded", prints: [/^$/] },
    { alert: "plantstore-credentials-unavailable", prints: [/the configuration is valid/] },
    { alert: "plantstore-certificate-expires", prints: [/notAfter=/] },
    { alert: "plantstore-workers-missing", prints: [/^$/] },
    { alert: "plantstore-queue-filling", prints: [/^plantstore_deletes_waiting\{/] },
    { alert: "plantstore-credentials-refused", prints: [/1 "refusal":"invalid"[^]*127\.0\.0\.1[^]*ci-cleanup/] },
    { alert: "plantstore-keys-old", prints: [/the configuration is valid/] },
    { alert: "plantstore-event-loop-late", prints: [/nodejs_eventloop_time/] },
    { alert: "gateway-down", prints: [/ serves plantstore[^]*"status":"live"/] },
    { alert: "gateway-not-ready", prints: [/"status":"ready"[^]* serves plantstore/] },
    { alert: "gateway-upstream-unavailable", prints: [/"status":"ready"[^]*gateway_upstream_connections\{/] },
    { alert: "gateway-upstream-busy", prints: [/gateway_upstream_re/] },
    { alert: "gateway-upstream-queued", prints: [/gateway_upstream_requests_active\{/] },
    { alert: "gateway-descriptors-refused", prints: [/serves plantstore\.v1[^]*The gateway would start/, /^$/] },
  ])("$alert succeed", async ({ alert, prints }) => {
    const commands = blocksOf(alert)
      .map((block) => (alert.startsWith("gateway-") ? ofProxy(block) : block))
      .map((block) => block.replaceAll("npx @plantstore/proxy", "plantstore-proxy"));
    expect(commands).toHaveLength(prints.length);
    for (const [index, block] of commands.entries())
      expect(await production.read(block)).toMatch(prints[index] ?? /^$/);
  });

  test("plantstore-reload-refused show why a file is refused, and read the corrected one", async () => {
    const [find = "", reload] = blocksOf("plantstore-reload-refused");
    await production.run("cp tokens kept\necho invalid > tokens");
    await expect.poll(() => production.read(find)).toContain('"problems":[');
    await production.run("cp kept tokens");
    await production.run(reload);
    expect(await production.read(call("$TOKEN", 2))).toBe("");
  });

  test("second-machine start a server that uses the same plants", async () => {
    const [start = ""] = blocksOf("second-machine");
    await production.run(`mkdir second && cp plantstore.env tokens *.pem second && cd second
sed -i 's/^PORT=.*/PORT=8444/; s/^PLANTSTORE_ADMIN_ADDRESS=.*/PLANTSTORE_ADMIN_ADDRESS=9465/' plantstore.env`);
    await production.run(start);
    const second = call("$TOKEN", 3).replace("plants.", "plants-2.");
    expect(await production.read(second)).toBe("");
    await production.run("cd ..");
    expect(await production.read(call("$TOKEN", 3))).toContain('"error":5');
  });

  test("plantstore-slow end the idle transactions of the plant store, and of no other database", async () => {
    const [show = "", end = ""] = blocksOf("plantstore-slow");
    const { read, postgres } = production;
    const port = (await read("echo $PGPORT")).trim();
    const clients = await Promise.all(
      ["plants?user=plantstore", "postgres?user=tester"].map((database) =>
        openClient(`postgres:///${database}&host=${postgres.socketFolder}&port=${port}`, "BEGIN"),
      ),
    );
    for (const client of clients) client.on("error", () => {});
    expect(await read(show)).toMatch(/\| BEGIN/);
    expect(await read(end)).toContain("(0 rows)");
    expect(await read(end.replace("1 minute", "0"))).toContain("(1 row)");
    const [ended, open] = clients;
    await expect(ended?.query("SELECT 1")).rejects.toThrow();
    await open?.query("SELECT 1");
    await open?.end();
  });

  test("gateway-reload-refused show why the configuration is refused, and read the corrected one", async () => {
    const [find = "", show, reload] = blocksOf("gateway-reload-refused");
    const { run, read } = production;
    const metric = ofProxy("curl --silent http://127.0.0.1:9464/metrics | grep '^gateway_file_reload_successful'");
    await run("cp proxy.yaml kept.yaml\necho 'lisen: 1' >> proxy.yaml");
    await run(reload);
    await expect.poll(() => read(find)).toMatch(/cannot reload the configuration: proxy\.yaml:4:1: lisen/);
    expect(await read(metric)).toMatch(/\{file_path="proxy\.yaml"\} 0$/m);
    await run("cp kept.yaml proxy.yaml");
    await run(reload);
    await expect.poll(() => read(metric)).not.toMatch(/ 0$/m);
    expect(await read(show)).toMatch(/notAfter=/);
  });

  test("rotation accept both tokens until the last one is revoked", async () => {
    const [create, revoke] = blocksOf("rotation").slice(3);
    const { run, read } = production;
    await run(`NEXT=$(${create})`);
    await expect.poll(() => read(call("$NEXT", 4))).toBe("");
    expect(await read(call("$TOKEN", 5))).toBe("");
    expect(await read("tail -n 1 plantstore.log")).toContain('"subject":"ci-cleanup"');
    await run(revoke);
    await expect.poll(() => read(call("$TOKEN", 6))).toContain('"error":16');
    expect(await read(call("$NEXT", 7))).toBe("");
  });

  // The last test, because curl does not trust the issuer of the next certificate.
  test("rotation replace the certificate of the server, and that of the proxy at SIGHUP", async () => {
    const [certificates, reload, show = ""] = blocksOf("rotation");
    const { run, read, folder: directory } = production;
    const [proxy = ""] = /(?<=https:\/\/)\S+(?= serves)/.exec(await read("cat proxy.log")) ?? [];
    const showProxy = show.replace("plants.example:8443", proxy);
    const next = createIssuedCertificate("localhost");
    writeFileSync(directory.file("next-cert.pem"), next.cert);
    writeFileSync(directory.file("next-key.pem"), next.key);
    await run(certificates);
    const dates = await read("openssl x509 -in next-cert.pem -noout -serial -enddate");
    await expect.poll(() => read(show)).toBe(dates);
    expect(await read(showProxy)).not.toBe(dates);
    await run(reload);
    await expect.poll(() => read(showProxy)).toBe(dates);
  });
});
