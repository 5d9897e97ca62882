import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, type ProxyProcess, startProxyProcess } from "@protoport/testing/proxy";
import { type Certificate, createCertificate } from "../../../../../testing/src/http/certificate.ts";
import { createTempFolder, within } from "@protoport/testing/process";
import { readSamples } from "../../../../../testing/src/telemetry/samples.ts";

// The proxy command reloads its certificate while it runs.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const [descriptors, cert, key] = [folder.file("set.binpb"), folder.file("cert.pem"), folder.file("key.pem")];
writeFileSync(descriptors, descriptorSetOf(GreenhouseService.file));

const [good, renewed] = [createCertificate("good"), createCertificate("renewed")];
const expired = createCertificate("expired", new Date(Date.now() - 3_600_000));

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

test("SIGHUP applies a renewed certificate, but no expired one", async () => {
  writePair(good);
  await using proxy = await start();
  const { command } = proxy;
  const { last_success_seconds: startedAtS = Number.NaN } = await metricsOf(proxy);
  writePair(expired);
  await reload(proxy);
  expect(await metricsOf(proxy)).toEqual({ successful: 0, last_success_seconds: startedAtS });
  expect(await servedCertificateName(proxy)).toBe("good");
  writePair(renewed);
  await reload(proxy);
  expect(await servedCertificateName(proxy)).toBe("renewed");
  const { last_success_seconds: renewedAtS, successful } = await metricsOf(proxy);
  expect(successful).toBe(1);
  expect(renewedAtS).toBeGreaterThan(startedAtS);
  command.process.kill("SIGTERM");
  expect(await command.end()).toBe(0);
  expect(command.stderr()).toMatch(/^cannot reload the certificate: .*the certificate expired at 20.*\n$/);
});
