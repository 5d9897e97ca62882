import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createIssuedCertificate } from "../../../packages/testing/src/carriers/certificate.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
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
const startProxy = `plantstore-proxy --upstream http://127.0.0.1:1 --descriptors set.binpb --port 0 --admin-port 9466 \\
  --tls-cert cert.pem --tls-key key.pem > proxy.log 2>&1 &
PROXY=$!
until grep -q serves proxy.log; do sleep 0.1; done`;

describe("the commands of", () => {
  let production: Production;
  beforeAll(async () => {
    production = await openProduction();
    const { run, read, folder: directory } = production;
    execFileSync("npx", ["buf", "build", "-o", directory.file("set.binpb")], { cwd: projectFolder });
    const [createDatabase, writeSettings, createTables, createToken, start] = productionBlocks();
    for (const block of [createDatabase, writeSettings, createTables, createToken, start]) await run(block);
    await read(`${call("$TOKEN", 1)}\n${call("wrong", 1)}`);
    await run(startProxy);
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
    { alert: "plantstore-slow", prints: [/wait_event/, /\(0 rows\)/] },
    { alert: "plantstore-queue-filling", prints: [/^plantstore_deletes_waiting\{/] },
    { alert: "plantstore-credentials-refused", prints: [/1 "refusal":"invalid"[^]*127\.0\.0\.1[^]*ci-cleanup/] },
    { alert: "plantstore-keys-old", prints: [/the configuration is valid/] },
    { alert: "plantstore-event-loop-late", prints: [/nodejs_eventloop_time/] },
    { alert: "gateway-upstream-unavailable", prints: [/"status":"ready"[^]*gateway_upstream_connections\{/] },
    { alert: "gateway-upstream-busy", prints: [/gateway_upstream_re/] },
    { alert: "gateway-upstream-queued", prints: [/gateway_upstream_requests_active\{/] },
    { alert: "gateway-descriptors-refused", prints: [/serves plantstore\.v1[^]*The gateway would start/, /^$/] },
    { alert: "gateway-certificate-refused", prints: [/notAfter=/, /^$/] },
  ])("$alert succeed", async ({ alert, prints }) => {
    const commands = blocksOf(alert).map((block) => block.replaceAll("npx @plantstore/proxy", "plantstore-proxy"));
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

  test("rotation replace the token and the certificate", async () => {
    const [certificates, show = "", tokens] = blocksOf("rotation");
    await production.run(tokens);
    await expect.poll(() => production.read(call("$TOKEN", 4))).toContain('"error":16');
    const next = createIssuedCertificate("localhost");
    writeFileSync(production.folder.file("next-cert.pem"), next.cert);
    writeFileSync(production.folder.file("next-key.pem"), next.key);
    await production.run(certificates);
    const dates = await production.read("openssl x509 -in next-cert.pem -noout -serial -enddate");
    await expect.poll(() => production.read(show)).toBe(dates);
  });
});
