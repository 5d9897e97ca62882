import { expect, onTestFinished, test, vi } from "vitest";
import { requireCertificates, ServedCertificate } from "../../src/command/certificates.ts";
import { Notices } from "../../src/command/notices.ts";
import { toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { type Certificate, createCertificate } from "../../../testing/src/http/certificate.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// The certificate in use after reloads, the problem that is reported, and the certificates that --check refuses.

const [first, second, expired] = [
  createCertificate("first"),
  createCertificate("second"),
  createCertificate("expired", new Date("2021-01-01T00:00:00Z")),
];
const pairs = {
  first,
  second,
  expired,
  "a certificate with another key": { cert: first.cert, key: second.key },
} as const;

function refused(reason: string): unknown {
  return expect.stringMatching(`^cannot reload the certificate: .*${reason}.*; the previous one stays in use$`);
}

test("an invalid certificate does not replace the previous one", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const startMs = Date.now();
  let pair: keyof typeof pairs = "first";
  const served = new ServedCertificate({ path: "cert.pem, key.pem", read: () => pairs[pair] });
  const seen = (["a certificate with another key", "expired", "first", "expired", "second"] as const).map((next) => {
    pair = next;
    vi.setSystemTime(Date.now() + 1);
    const isReloaded = served.reload();
    const current = served.current === first ? "first" : "second";
    return [isReloaded, current, served.problem, served.lastSuccessMs - startMs];
  });
  expect(seen).toEqual([
    [false, "first", refused(""), 0],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z"), 0],
    [true, "first", undefined, 3],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z"), 3],
    [true, "second", undefined, 5],
  ]);
});

const invalid = (year: number): unknown => expect.stringMatching(`^the certificate in use expired at ${year}`);

test("report() logs an invalid certificate once, and a failed reload every ten minutes", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const logged: string[] = [];
  const notices = new Notices({ out: () => undefined, err: (line) => void logged.push(line) });
  onTestFinished(() => notices.close());
  let pair: Certificate = expired;
  const served = new ServedCertificate({ path: "cert.pem, key.pem", read: () => pair });
  const steps: readonly (readonly [next: Certificate, lines: readonly unknown[]])[] = [
    [expired, [invalid(2021)]],
    [expired, []],
    [createCertificate("expired later", new Date("2022-01-01T00:00:00Z")), [invalid(2022)]],
    [pairs["a certificate with another key"], Array(3).fill(refused(""))],
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

test.each([
  { flag: "tls-cert", keyFlag: "tls-key" },
  { flag: "upstream-tls-cert", keyFlag: "upstream-tls-key" },
])("--check refuses --$flag if only the second certificate is valid", async ({ flag, keyFlag }) => {
  using folder = createTempFolder();
  const upstream = { upstream: ["https://127.0.0.1:1"], reflection: true };
  const certificate = folder.write("cert.pem", expired.cert + first.cert);
  const files = { [flag]: certificate, [keyFlag]: folder.write("key.pem", expired.key) };
  const settings = await toProxySettings(readProxyConfiguration(undefined, { ...upstream, ...files }));
  expect(() => requireCertificates(settings)).toThrow(
    `--${flag} has a certificate that expired at 2021-01-01T00:00:00.000Z`,
  );
});

test("--check accepts --upstream-tls-ca if only the second authority is valid", async () => {
  using folder = createTempFolder();
  const ca = folder.write("ca.pem", expired.cert + first.cert);
  const flags = { upstream: ["https://127.0.0.1:1"], reflection: true, "upstream-tls-ca": ca };
  const settings = await toProxySettings(readProxyConfiguration(undefined, flags));
  expect(() => requireCertificates(settings)).not.toThrow();
});
