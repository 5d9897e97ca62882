import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { ServedCertificate } from "../../../../src/command/certificates.ts";
import { type Certificate, createCertificate } from "../../../../../testing/src/http/certificate.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { type ProxyProcess, startProxyProcess } from "../../../../../testing/src/gateway/proxy-process.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { readSamples } from "../../../../../testing/src/telemetry/samples.ts";

// The proxy command reloads its certificate while it runs.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const [descriptors, cert, key] = [folder.file("set.binpb"), folder.file("cert.pem"), folder.file("key.pem")];
writeFileSync(descriptors, descriptorSetOf(GreenhouseService.file));

const hourMs = 3_600_000;
const [good, renewed] = [createCertificate("good"), createCertificate("renewed")];
const expired = createCertificate("expired", new Date(Date.now() - hourMs));
const early = createCertificate("early", undefined, new Date(Date.now() + hourMs));

function writePair(pair: Certificate): void {
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key);
}

function start(): Promise<ProxyProcess> {
  const tls = ["--tls-cert", cert, "--tls-key", key];
  const args = ["--port", "0", "--drain-delay-ms", "0", "--upstream", "http://127.0.0.1:1"];
  return startProxyProcess([...args, "--descriptors", descriptors, ...tls]);
}

async function servedCertificateName({ port }: ProxyProcess): Promise<string | readonly string[] | undefined> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await within(once(socket, "secureConnect"), "a connection");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

/** Returns the metrics about the last certificate reload, by the last parts of their names. */
async function metricsOf({ adminUrl }: ProxyProcess): Promise<Readonly<Record<string, number>>> {
  const prefix = "gateway_file_reload_";
  const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
  const ofCertificate = samples.filter(
    ({ name, labels }) => name.startsWith(prefix) && labels["file_path"] === `${cert}, ${key}`,
  );
  return Object.fromEntries(ofCertificate.map(({ name, value }) => [name.slice(prefix.length), value]));
}

/** Sends SIGHUP, and resolves once the descriptor metric shows that everything was read again. */
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

test.each<[name: string, next: Certificate, problem: RegExp]>([
  ["has expired", expired, /the certificate expired at 20/],
  ["is not valid yet", early, /the certificate is not valid before 20/],
  ["does not match its key", { ...renewed, key: good.key }, /the private key does not belong to the certificate/],
  ["cannot be read", { ...renewed, cert: "none" }, /cert\.pem does not contain a PEM certificate or key/],
])("a certificate that %s does not replace a valid one", async (_name, next, problem) => {
  writePair(good);
  await using proxy = await start();
  const { command } = proxy;
  const { last_success_seconds: startedAtS = Number.NaN, successful } = await metricsOf(proxy);
  expect(successful).toBe(1);
  writePair(next);
  for (let time = 0; time < 2; time++) {
    await reload(proxy);
    expect(await metricsOf(proxy)).toEqual({ successful: 0, last_success_seconds: startedAtS });
    expect(await servedCertificateName(proxy)).toBe("good");
  }

  writePair(renewed);
  await reload(proxy);
  expect(await servedCertificateName(proxy)).toBe("renewed");
  const { last_success_seconds: renewedAtS, successful: isRenewed } = await metricsOf(proxy);
  expect(isRenewed).toBe(1);
  expect(renewedAtS).toBeGreaterThan(startedAtS);

  // Two failed reloads are logged once, and the next one after a success is logged again.
  writePair(next);
  await reload(proxy);
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  const logged = command.stderr().split("\n").slice(0, -1);
  expect(logged).toEqual(Array(2).fill(expect.stringMatching(/^cannot reload the certificate: /)));
  expect(logged[0]).toMatch(problem);
});

test.each([
  { name: "an expired certificate", pair: expired, logged: /^the certificate in use expired at 20/ },
  { name: "a future certificate", pair: early, logged: /^the certificate in use is not valid before 20/ },
])("$name is logged and shown in metrics until it is replaced", async ({ pair, logged }) => {
  writePair(pair);
  await using proxy = await start();
  const { command } = proxy;
  expect((await metricsOf(proxy))["successful"]).toBe(0);
  writePair(createCertificate("expired, too", new Date(Date.now() - 2 * hourMs)));
  await reload(proxy);
  // Neither certificate is valid, so the new one is used.
  expect(await servedCertificateName(proxy)).toBe("expired, too");
  expect((await metricsOf(proxy))["successful"]).toBe(0);
  writePair(good);
  await reload(proxy);
  expect(await servedCertificateName(proxy)).toBe("good");
  expect((await metricsOf(proxy))["successful"]).toBe(1);
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  expect(command.stderr().split("\n").slice(0, -1)).toEqual([
    expect.stringMatching(logged),
    expect.stringMatching(/^the certificate in use expired at 20/),
  ]);
});

test("a certificate that expires during use is reported as a problem", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const soon = createCertificate("soon", new Date(Date.now() + hourMs));
  const served = new ServedCertificate({ path: "cert.pem", read: () => soon });
  expect(served.problem).toBeUndefined();
  vi.setSystemTime(Date.now() + 2 * hourMs);
  expect(served.problem).toMatch(/^the certificate in use expired at 20/);
});
