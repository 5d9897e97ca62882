import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ServedCertificate } from "../../src/command/certificates.ts";
import { type Certificate, createCertificate } from "../../../testing/src/carriers/certificate.ts";
import { within } from "../../../testing/src/deadline.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { type ProxyProcess, startProxyProcess } from "../../../testing/src/gateway/proxy-process.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { readSamples } from "../../../testing/src/telemetry/samples.ts";

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
  const words = ["--port", "0", "--drain-delay-ms", "0", "--upstream", "http://127.0.0.1:1"];
  return startProxyProcess([...words, "--descriptors", descriptors, ...tls]);
}

async function servedBy({ port }: ProxyProcess): Promise<string | readonly string[] | undefined> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await within(once(socket, "secureConnect"), "a connection");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

/** The metrics of the last reload of the certificate, by what their names end with. */
async function metricsOf({ adminUrl }: ProxyProcess): Promise<Readonly<Record<string, number>>> {
  const prefix = "gateway_file_reload_";
  const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
  const found = samples.filter(
    ({ name, labels }) => name.startsWith(prefix) && labels["file_path"] === `${cert}, ${key}`,
  );
  return Object.fromEntries(found.map(({ name, value }) => [name.slice(prefix.length), value]));
}

/** Sends SIGHUP, and resolves once the files were read again: the descriptors, which do not change, are so as well. */
async function reload({ command, adminUrl }: ProxyProcess): Promise<void> {
  const readAt = async (): Promise<number> => {
    const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
    const name = "gateway_descriptors_reload_last_success_seconds";
    return samples.find((sample) => sample.name === name)?.value ?? Number.NaN;
  };
  const before = await readAt();
  command.process.kill("SIGHUP");
  await expect.poll(readAt).toBeGreaterThan(before);
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
  for (let time = 0; time < 2; time++) {
    await reload(proxy);
    expect(await metricsOf(proxy)).toEqual({ successful: 0, last_success_seconds: startedAtS });
    expect(await servedBy(proxy)).toBe("good");
  }

  put(renewed);
  await reload(proxy);
  expect(await servedBy(proxy)).toBe("renewed");
  const { last_success_seconds: renewedAtS, successful: isRenewed } = await metricsOf(proxy);
  expect(isRenewed).toBe(1);
  expect(renewedAtS).toBeGreaterThan(startedAtS);

  // Refused twice, it is written once, and again after a certificate that was good.
  put(next);
  await reload(proxy);
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  const written = command.stderr().split("\n").slice(0, -1);
  expect(written).toEqual(Array(2).fill(expect.stringMatching(/^kept the previous certificate: /)));
  expect(written[0]).toMatch(says);
});

test("a certificate in use that has expired sets the metric and is written, until a valid one replaces it", async () => {
  put(expired);
  await using proxy = await start();
  const { command } = proxy;
  expect((await metricsOf(proxy))["successful"]).toBe(0);
  put(createCertificate("expired, too", new Date(Date.now() - 2 * hourMs)));
  await reload(proxy);
  // Rather than kept: neither is better than the other.
  expect(await servedBy(proxy)).toBe("expired, too");
  expect((await metricsOf(proxy))["successful"]).toBe(0);
  put(good);
  await reload(proxy);
  expect(await servedBy(proxy)).toBe("good");
  expect((await metricsOf(proxy))["successful"]).toBe(1);
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  const written = command.stderr().split("\n").slice(0, -1);
  expect(written).toEqual(Array(2).fill(expect.stringMatching(/^the certificate in use expired at 20/)));
});

test("a certificate has a problem once it expires in use", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const soon = createCertificate("soon", new Date(Date.now() + hourMs));
  const served = new ServedCertificate({ path: "cert.pem", read: () => soon });
  expect(served.problem).toBeUndefined();
  vi.setSystemTime(Date.now() + 2 * hourMs);
  expect(served.problem).toMatch(/^the certificate in use expired at 20/);
});
