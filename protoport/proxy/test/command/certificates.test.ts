import { writeFileSync } from "node:fs";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { requireCertificates, ServedCertificate } from "../../src/command/certificates.ts";
import { Notices } from "../../src/command/notices.ts";
import { toCertificateFiles } from "../../src/command/pem-files.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { type Certificate, createCertificate } from "@protoport/testing/http";
import { createTempFolder } from "@protoport/testing/process";

afterEach(() => void vi.useRealTimers());

const [first, second, expired, early] = [
  createCertificate("first"),
  createCertificate("second"),
  createCertificate("expired", new Date("2021-01-01T00:00:00Z")),
  createCertificate("early", new Date("2101-01-01T00:00:00Z"), new Date("2100-01-01T00:00:00Z")),
];
const otherKey = { cert: first.cert, key: second.key };
const refused = (reason: string): unknown =>
  expect.stringMatching(`^cannot reload the certificate: .*${reason}.*; the previous one stays in use$`);

test("an invalid certificate does not replace the previous one", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const startMs = Date.now();
  using folder = createTempFolder();
  const [cert, key] = [folder.file("cert.pem"), folder.file("key.pem")];
  const write = (pair: Certificate): void => {
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key);
  };
  write(first);
  const served = new ServedCertificate(toCertificateFiles(cert, key));
  const seen = [otherKey, expired, early, { ...second, cert: "none" }, first, expired, second].map((next) => {
    write(next);
    vi.setSystemTime(Date.now() + 1);
    const isReloaded = served.reload();
    const current = served.current.cert === first.cert ? "first" : "second";
    return [isReloaded, current, served.problem, served.lastSuccessMs - startMs];
  });
  expect(seen).toEqual([
    [false, "first", refused("the private key does not belong to the certificate"), 0],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z"), 0],
    [false, "first", refused("is not valid before 2100-01-01T00:00:00.000Z"), 0],
    [false, "first", refused("cert.pem does not contain a PEM certificate or key"), 0],
    [true, "first", undefined, 5],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z"), 5],
    [true, "second", undefined, 7],
  ]);
});

test("a certificate that expires during use is a problem", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const soon = createCertificate("soon", new Date(Date.now() + 3_600_000));
  const served = new ServedCertificate({ path: "cert.pem", read: () => soon });
  expect(served.problem).toBeUndefined();
  vi.setSystemTime(Date.now() + 3_600_001);
  expect(served.problem).toMatch(/^the certificate in use expired at 20/);
});

const invalid = (year: number): unknown => expect.stringMatching(`^the certificate in use expired at ${year}`);

test("report() logs an invalid certificate once, and a failed reload every ten minutes", () => {
  vi.useFakeTimers();
  const logged: string[] = [];
  const notices = new Notices({ out: () => undefined, err: (line) => void logged.push(line) });
  onTestFinished(() => notices.close());
  let pair: Certificate = expired;
  const served = new ServedCertificate({ path: "cert.pem, key.pem", read: () => pair });
  const steps: readonly (readonly [next: Certificate, lines: readonly unknown[]])[] = [
    [expired, [invalid(2021)]],
    [expired, []],
    [createCertificate("expired later", new Date("2022-01-01T00:00:00Z")), [invalid(2022)]],
    [otherKey, Array(3).fill(refused(""))],
    [first, []],
    [expired, Array(3).fill(refused("expired at 2021"))],
  ];
  for (const [next, lines] of steps) {
    pair = next;
    served.reload();
    served.report(notices);
    vi.advanceTimersByTime(1_200_000);
    expect(logged.splice(0)).toEqual(lines);
  }
});

const tlsFlags: readonly (readonly [flag: string, keyFlag?: string])[] = [
  ["tls-cert", "tls-key"],
  ["upstream-tls-cert", "upstream-tls-key"],
  ["upstream-tls-ca"],
];

/** Checks PEM texts for a flag, and for the key that belongs to a certificate. */
async function check([flag, keyFlag]: (typeof tlsFlags)[number], cert: string, key: string): Promise<void> {
  using folder = createTempFolder();
  const upstream = { upstream: ["https://127.0.0.1:1"], reflection: true };
  const files = { [flag]: folder.write("cert.pem", cert), ...(keyFlag && { [keyFlag]: folder.write("key.pem", key) }) };
  requireCertificates(await toProxySettings(readProxyConfiguration(undefined, { ...upstream, ...files })));
}

test.each(tlsFlags.map((names) => ({ flag: names[0], names })))("--check refuses an invalid --$flag", async (row) => {
  const { flag, names } = row;
  for (const [{ cert, key }, problem] of [
    [expired, "expired at 2021-01-01T00:00:00.000Z"],
    [early, "is not valid before 2100-01-01T00:00:00.000Z"],
  ] as const) {
    await expect(check(names, cert, key)).rejects.toThrow(`--${flag} has a certificate that ${problem}`);
    await check(names, first.cert + cert, first.key);
    // In a chain, the first certificate must be valid. With several authorities, any one must be.
    const reversed = check(names, cert + first.cert, key);
    if (flag.endsWith("ca")) await reversed;
    else await expect(reversed).rejects.toThrow(`--${flag} has a certificate that ${problem}`);
  }
});

test("--check refuses a key that does not belong to its certificate", async () => {
  const checked = check(["tls-cert", "tls-key"], otherKey.cert, otherKey.key);
  await expect(checked).rejects.toThrow("--tls-cert cannot be used with its key: ");
});

test("--check refuses a malformed authority after a valid one", async () => {
  const broken = first.cert.replace(/[A-Za-z0-9+/]{20}/, "A".repeat(20));
  const problem = "--upstream-tls-ca has a certificate that cannot be read: ";
  await expect(check(["upstream-tls-ca"], first.cert + broken, "")).rejects.toThrow(problem);
});
