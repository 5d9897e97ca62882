import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createCertificate } from "@protoport/testing/http";
import { parseCertificates, readKeyPair, validityProblem } from "../../src/files/index.ts";

const [first, other] = [createCertificate("first"), createCertificate("other")];
const expired = createCertificate("expired", new Date("2021-01-01T00:00:00Z"));

test.each([
  { name: "a pair", pair: first },
  { name: "an expired pair in place of an expired one", pair: expired, current: expired },
  { name: "a chain whose second certificate has expired", pair: { cert: first.cert + expired.cert, key: first.key } },
  { name: "a pair in place of an expired one", pair: first, current: expired },
])("readKeyPair returns $name", ({ pair, current }) => {
  const before = current && readKeyPair(current.cert, current.key);
  expect(readKeyPair(pair.cert, pair.key, before)).toMatchObject(pair);
});

test.each(
  // oxfmt-ignore
  [
    ["another certificate's key", { cert: first.cert, key: other.key },
      "the private key does not belong to the certificate"],
    ["files in the other order", { cert: first.key, key: first.cert },
      "the files must be a PEM certificate and its PEM private key, in this order ("],
    ["an empty key", { cert: first.cert, key: "" },
      "the files must be a PEM certificate and its PEM private key, in this order ("],
    ["an expired pair in place of a valid one", expired, "the certificate expired at 2021-01-01T00:00:00.000Z"],
  ],
)("readKeyPair refuses %s", (_name, pair, want) => {
  expect(() => readKeyPair(pair.cert, pair.key, readKeyPair(other.cert, other.key))).toThrow(want);
});

test.each([
  { name: "nothing for a text without PEM", pem: "first\n", want: 0 },
  { name: "each certificate next to a key", pem: `first\n${first.cert}${first.key}${other.cert}`, want: 2 },
])("parseCertificates returns $name", ({ pem, want }) => expect(parseCertificates(pem)).toHaveLength(want));

test.each([
  { name: "a file that is still being written", pem: first.cert + other.cert.slice(0, 200), want: "has no end" },
  { name: "a malformed certificate", pem: first.cert.replace(/\nMI+/, "\nAA"), want: /asn1|ASN1|PEM/ },
])("parseCertificates refuses $name", ({ pem, want }) => expect(() => parseCertificates(pem)).toThrow(want));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const certificate = { validFromDate: new Date(1_000), validToDate: new Date(2_000) };

test.each([
  { name: "before", nowMs: 999, problem: "is not valid before 1970-01-01T00:00:01.000Z" },
  { name: "at the start of", nowMs: 1_000, problem: undefined },
  { name: "at the end of", nowMs: 2_000, problem: undefined },
  { name: "after", nowMs: 2_001, problem: "expired at 1970-01-01T00:00:02.000Z" },
])("validityProblem returns $problem $name the validity period", ({ nowMs, problem }) => {
  vi.setSystemTime(nowMs);
  expect(validityProblem(certificate)).toBe(problem);
});
