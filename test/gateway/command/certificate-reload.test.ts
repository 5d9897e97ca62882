import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Certificate, createCertificate } from "../../support/carriers/certificate.ts";
import { within } from "../../support/deadline.ts";
import { descriptorSetOf } from "../../support/gateway/descriptor-set.ts";
import { type ProxyProcess, startProxyProcess } from "../../support/gateway/proxy-process.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";
import { readSamples } from "../../support/telemetry/samples.ts";

// The command `proxy` while its certificate is replaced.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const [descriptors, cert, key] = [folder.file("set.binpb"), folder.file("cert.pem"), folder.file("key.pem")];
writeFileSync(descriptors, descriptorSetOf(GreenhouseService.file));

const hourMs = 3_600_000;
const [good, renewed] = [createCertificate("good"), createCertificate("renewed")];
const expired = createCertificate("expired", new Date(Date.now() - hourMs));
const early = createCertificate("early", undefined, new Date(Date.now() + hourMs));

function put(pair: Certificate): void {
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key);
}

function start(): Promise<ProxyProcess> {
  const tls = ["--tls-cert", cert, "--tls-key", key];
  return startProxyProcess(["--port", "0", "--upstream", "http://127.0.0.1:1", "--descriptors", descriptors, ...tls]);
}

async function servedBy({ port }: ProxyProcess): Promise<string | readonly string[] | undefined> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await within(once(socket, "secureConnect"), "a connection");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

/** The metrics of the last reload, by what their names end with. */
async function metricsOf({ adminUrl }: ProxyProcess): Promise<Readonly<Record<string, number>>> {
  const prefix = "gateway_file_reload_";
  const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
  const found = samples.filter(
    ({ name, labels }) => name.startsWith(prefix) && labels["file_path"] === `${cert}, ${key}`,
  );
  return Object.fromEntries(found.map(({ name, value }) => [name.slice(prefix.length), value]));
}

test.each<{ name: string; next: Certificate; says: RegExp }>([
  { name: "has expired", next: expired, says: /the certificate expired at 20/ },
  { name: "is not valid yet", next: early, says: /the certificate is not valid before 20/ },
  { name: "does not match its key", next: { ...renewed, key: good.key }, says: /key values mismatch/ },
  {
    name: "cannot be read",
    next: { ...renewed, cert: "none" },
    says: /cert\.pem has no certificate and no key in PEM/,
  },
])("a certificate that $name does not replace a valid one", async ({ next, says }) => {
  put(good);
  await using proxy = await start();
  const { command } = proxy;
  const { last_success_seconds: startedAtS = Number.NaN, successful } = await metricsOf(proxy);
  expect(successful).toBe(1);
  put(next);
  command.process.kill("SIGHUP");
  await expect.poll(() => metricsOf(proxy)).toEqual({ successful: 0, last_success_seconds: startedAtS });
  expect(await servedBy(proxy)).toBe("good");
  command.process.kill("SIGHUP");
  expect(await servedBy(proxy)).toBe("good");
  expect(command.stderr().split("\n").slice(0, -1)).toEqual([
    expect.stringMatching(/^the certificate stays as it was: /),
  ]);
  expect(command.stderr()).toMatch(says);

  put(renewed);
  command.process.kill("SIGHUP");
  await expect.poll(() => servedBy(proxy)).toBe("renewed");
  const { last_success_seconds: renewedAtS, successful: isRenewed } = await metricsOf(proxy);
  expect(isRenewed).toBe(1);
  expect(renewedAtS).toBeGreaterThan(startedAtS);
});

test("a certificate that has expired is replaced by another one that has, rather than kept", async () => {
  put(expired);
  await using proxy = await start();
  put(createCertificate("expired, too", new Date(Date.now() - hourMs)));
  proxy.command.process.kill("SIGHUP");
  await expect.poll(() => servedBy(proxy)).toBe("expired, too");
});
