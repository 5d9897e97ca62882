import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, startProxyProcess, ProxyCommand } from "@protoport/testing/proxy";
import { createCertificate, createTempFolder, retainedBytes } from "@protoport/testing";

// Opening a named pipe without a writer blocks the process, unless the pipe is opened with O_NONBLOCK.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const certificate = createCertificate("proxy");
const contents = {
  "set.binpb": descriptorSetOf(GreenhouseService.file),
  "cert.pem": certificate.cert,
  "key.pem": certificate.key,
  "ca.pem": certificate.cert,
  "client-cert.pem": certificate.cert,
  "client-key.pem": certificate.key,
  token: "secret-of-reflection",
  "rules.yaml": "http: { rules: [] }",
  "proxy.yaml": `listen: { port: 0, tls: { cert: ${folder.file("cert.pem")}, key: ${folder.file("key.pem")} } }
drain: { delayMs: 0 }
rest: { rules: [${folder.file("rules.yaml")}] }
upstreams:
- addresses: ["https://127.0.0.1:1"]
  descriptors: ${folder.file("set.binpb")}
  requestHeader: { set: { authorization: { file: ${folder.file("token")} } } }
  tls:
    ca: ${folder.file("ca.pem")}
    cert: ${folder.file("client-cert.pem")}
    key: ${folder.file("client-key.pem")}
`,
};

test("a reload rejects files that were replaced by pipes", async () => {
  for (const [name, content] of Object.entries(contents)) writeFileSync(folder.file(name), content);
  await using proxy = await startProxyProcess(["--config", folder.file("proxy.yaml")]);
  const { process: child, stderr, stdout } = proxy.command;
  for (const name of Object.keys(contents)) {
    const path = folder.file(name);
    renameSync(path, `${path}.kept`);
    execFileSync("mkfifo", [path]);
    child.kill("SIGHUP");
    await expect.poll(stderr).toContain(`${path} is not a regular file`);
    expect((await fetch(`${proxy.adminUrl}/livez`)).status).toBe(200);
    rmSync(path);
    renameSync(`${path}.kept`, path);
  }
  const reloads = stdout().split("configuration reloaded").length;
  child.kill("SIGHUP");
  await expect.poll(() => stdout().split("configuration reloaded").length).toBeGreaterThan(reloads);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});

/** Number of reloads before the measurement. V8 compiles code during the first 700 reloads, which takes 2 to 3 MB. */
const warmUpReloads = 700;

const reloads = 300;
/** How many bytes the measured reloads may add. If they kept their descriptors and routes, they would add over 30 MB. */
const maxAddedBytes = 3_000_000;

test("the heap does not grow during 300 reloads after a warm-up", async () => {
  const descriptors = folder.write("memory.binpb", descriptorSetOf(GreenhouseService.file));
  const token = folder.write("memory-token", "token-of-the-reload-test");
  const configure = (reload: number): string => {
    const text = `listen: { host: 127.0.0.1, port: 0 }
drain: { delayMs: 0 }
docs: true
mcp: { tools: ["*"] }
accessLog: ${reload % 2 === 0 ? "errors" : "off"}
authentication: { tokens: [{ file: ${token} }], realm: realm-${reload % 3} }
rateLimit: { perPrincipal: 10 }
upstreams:
- { addresses: ["http://127.0.0.1:1"], descriptors: ${descriptors}, connections: ${1 + (reload % 4)} }
`;
    return folder.write("reloads.yaml", text);
  };
  await using proxy = new ProxyCommand(["--config", configure(0)]);
  await proxy.serving;
  let bytesBefore = 0;
  for (let reload = 1; reload <= warmUpReloads + reloads; reload++) {
    configure(reload);
    const linesBefore = proxy.lines.length;
    proxy.hangUp();
    expect(await proxy.waitForLine(/^configuration reloaded$/, linesBefore)).toBeDefined();
    if (reload === warmUpReloads) bytesBefore = await retainedBytes();
  }
  expect((await retainedBytes()) - bytesBefore).toBeLessThan(maxAddedBytes);
}, 300_000);
