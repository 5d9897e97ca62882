import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createIssuedCertificate } from "@protoport/testing/http";
import { projectFolder } from "@protoport/testing/process";
import { openClient } from "../../support/plants/postgres-server.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { openProduction, type Production, productionBlocks } from "./production.ts";

// Runs the commands in docs/how-to/runbooks/ at a server that docs/how-to/run-in-production.md has set up.

const blocks = Map.groupBy(blocksRunBy("test/suites/prometheus/runbooks.test.ts"), ({ section }) => section);
const blocksOf = (section: string): readonly string[] => (blocks.get(section) ?? []).map(({ text }) => text);

/** A call to the plant store with a credential. */
const call = (token: string, id: number): string =>
  `curl --silent -X DELETE -H "Authorization: Bearer ${token}" https://plants.example:8443/plants/${id}`;

/** Starts a proxy with descriptors and a certificate, as the pages for its alerts do. */
const startProxy = `cat > proxy.yaml <<EOF
listen: { port: 0, tls: { cert: cert.pem, key: key.pem } }
admin: { port: 9464 }
upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: set.binpb }]
EOF
protoport --config proxy.yaml > proxy.log 2>&1 &
PROXY=$!
until grep -q serves proxy.log; do sleep 0.1; done`;

describe("runbooks", () => {
  let production: Production;
  /** Replaces the documented metrics port with the proxy's. */
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
    { alert: "PlantstoreDown", prints: [/"msg":"call"[^]*reports no problem[^]*the configuration is valid/] },
    {
      alert: "PlantstoreNotReady",
      prints: [/"status":"ready"[^]*the configuration is valid/, / plantstore +\|[^]* plantstore +\| +-1 \| \d+$/m],
    },
    { alert: "PlantstoreErrors", prints: [/^plantstore_deletes_waiting\{plantstore_wait_reason="lock"\} 0$/m] },
    { alert: "PlantstoreDeletionsProtected", prints: [/^$/, /Table "public\.plants"/] },
    { alert: "PlantstoreOverloaded", prints: [/^$/] },
    { alert: "PlantstoreCredentialsUnavailable", prints: [/the configuration is valid/] },
    { alert: "PlantstoreCertificateExpires", prints: [/notAfter=/] },
    { alert: "PlantstoreWorkersMissing", prints: [/^$/] },
    { alert: "PlantstoreQueueFilling", prints: [/^plantstore_deletes_waiting\{/] },
    { alert: "PlantstoreCredentialsRefused", prints: [/1 "refusal":"invalid"[^]*127\.0\.0\.1[^]*ci-cleanup/] },
    { alert: "PlantstoreKeysOld", prints: [/the configuration is valid/] },
    { alert: "PlantstoreEventLoopLate", prints: [/nodejs_eventloop_time/] },
    { alert: "GatewayDown", prints: [/ serves plantstore[^]*"status":"live"/] },
    { alert: "GatewayNotReady", prints: [/"status":"ready"[^]* serves plantstore/] },
    { alert: "GatewayErrors", prints: [/ serves plantstore/] },
    { alert: "GatewayUpstreamUnavailable", prints: [/"status":"ready"[^]*gateway_upstream_connections\{/] },
    { alert: "GatewayUpstreamBusy", prints: [/gateway_upstream_re/] },
    { alert: "GatewayUpstreamQueued", prints: [/gateway_upstream_requests_active\{/] },
    {
      alert: "GatewayDescriptorsRefused",
      prints: [/reload_successful\{.*\} 1$[^]*serves plantstore\.v1[^]*The proxy would serve:/m, /^$/],
    },
  ])("the commands for $alert print the expected output for a healthy server", async ({ alert, prints }) => {
    const commands = blocksOf(alert)
      .map((block) => (alert.startsWith("Gateway") ? ofProxy(block) : block))
      .map((block) => block.replaceAll("npx @protoport/proxy", "protoport"));
    expect(commands).toHaveLength(prints.length);
    for (const [at, block] of commands.entries()) expect(await production.read(block)).toMatch(prints[at] ?? /^$/);
  });

  test("the commands for PlantstoreReloadRefused print the reason, and load the corrected file", async () => {
    const [find = "", reload] = blocksOf("PlantstoreReloadRefused");
    await production.run("cp tokens kept\necho invalid > tokens");
    await expect.poll(() => production.read(find)).toContain('"problems":[');
    await production.run("cp kept tokens");
    await production.run(reload);
    expect(await production.read(call("$TOKEN", 2))).toBe("");
  });

  test("the commands for adding a machine start a server with the same plants", async () => {
    const [start = ""] = blocksOf("Add a machine");
    await production.run(`mkdir second && cp plantstore.env tokens *.pem second && cd second
sed -i 's/^PORT=.*/PORT=8444/; s/^PLANTSTORE_ADMIN_ADDRESS=.*/PLANTSTORE_ADMIN_ADDRESS=9465/' plantstore.env`);
    await production.run(start);
    expect(await production.read(call("$TOKEN", 3).replace("plants.", "plants-2."))).toBe("");
    await production.run("cd ..");
    expect(await production.read(call("$TOKEN", 3))).toContain('"error":5');
  });

  test("the commands for PlantstoreSlow end idle transactions only in the plant store's database", async () => {
    const [show = "", end = ""] = blocksOf("PlantstoreSlow");
    const { read, postgres } = production;
    const port = (await read("echo $PGPORT")).trim();
    const clients = await Promise.all(
      ["plants?user=plantstore", "postgres?user=tester"].map((database) =>
        openClient(`postgres:///${database}&host=${postgres.socketFolder}&port=${port}`, "BEGIN"),
      ),
    );
    for (const client of clients) client.on("error", () => {});
    expect(await read(show)).toMatch(/\| plantstore \| idle in transaction \| Client +\| ClientRead .*\| BEGIN/);
    expect(await read(end)).toContain("(0 rows)");
    expect(await read(end.replace("1 minute", "0"))).toContain("(1 row)");
    const [ended, open] = clients;
    await expect(ended?.query("SELECT 1")).rejects.toThrow();
    await open?.query("SELECT 1");
    await open?.end();
  });

  test("the commands for GatewayReloadRefused print the reason, and load the corrected configuration", async () => {
    const [find = "", show, reload] = blocksOf("GatewayReloadRefused");
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

  test("the commands for rotating tokens keep the old token valid until it is revoked", async () => {
    const [create, revoke] = blocksOf("Rotate tokens");
    const { run, read } = production;
    await run(`NEXT=$(${create})`);
    await expect.poll(() => read(call("$NEXT", 4))).toBe("");
    expect(await read(call("$TOKEN", 5))).toBe("");
    expect(await read("tail -n 1 plantstore.log")).toContain('"subject":"ci-cleanup"');
    await run(revoke);
    await expect.poll(() => read(call("$TOKEN", 6))).toContain('"error":16');
    expect(await read(call("$NEXT", 7))).toBe("");
  });

  // The last test, because curl does not trust the next certificate's issuer.
  test("the commands for rotating certificates replace the server's and the proxy's certificate", async () => {
    const [certificates, reload, show = ""] = blocksOf("Rotate certificates");
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
