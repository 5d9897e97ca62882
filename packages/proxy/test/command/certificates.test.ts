import { expect, test } from "vitest";
import { ServedCertificate } from "../../src/command/certificates.ts";
import { createCertificate } from "../../../testing/src/http/certificate.ts";

// The certificate in use after reloads, and the problem that is reported.

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
  let pair: keyof typeof pairs = "first";
  const served = new ServedCertificate({ path: "cert.pem, key.pem", read: () => pairs[pair] });
  const seen = (["a certificate with another key", "expired", "first", "expired", "second"] as const).map((next) => {
    pair = next;
    return [served.reload(), served.current === first ? "first" : "second", served.problem];
  });
  expect(seen).toEqual([
    [false, "first", refused("")],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z")],
    [true, "first", undefined],
    [false, "first", refused("expired at 2021-01-01T00:00:00.000Z")],
    [true, "second", undefined],
  ]);
});
