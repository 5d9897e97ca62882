import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** A certificate and its key, both as PEM. */
export type Certificate = { readonly cert: string; readonly key: string };
// Object identifiers, in DER without tag and length.
const ecdsaWithSha256 = Buffer.from("2a8648ce3d040302", "hex");
const commonName = Buffer.from("550403", "hex");
const subjectAltName = Buffer.from("551d11", "hex");
const basicConstraints = Buffer.from("551d13", "hex");

/** The DER tags (ITU-T X.690) in certificates. */
// oxfmt-ignore
const tag = {
  boolean: 0x01, integer: 0x02, bitString: 0x03, octetString: 0x04, oid: 0x06, utf8String: 0x0c, generalizedTime: 0x18,
  sequence: 0x30, set: 0x31, context0: 0xa0, context3: 0xa3, dnsName: 0x82, ipAddress: 0x87,
} as const;

/** Creates a self-signed certificate for localhost and 127.0.0.1 (RFC 5280), which is its own authority. */
export function createCertificate(
  name: string,
  notAfter: Date = endOfCentury,
  notBefore: Date = startOfValidity,
): Certificate {
  const keys = generateKeys();
  // oxfmt-ignore
  const cert = issue({
    subject: name, publicKey: keys.publicKey, isAuthority: true, issuer: name, issuerKey: keys.privateKey, notBefore,
    notAfter,
  });
  return { cert, key: toPem(keys.privateKey) };
}

/** Creates a certificate for localhost and 127.0.0.1, and its issuer. Some clients reject an authority as a server. */
export function createIssuedCertificate(name: string): Certificate & { readonly authority: string } {
  const [authority, server] = [generateKeys(), generateKeys()];
  const issuer = `authority of ${name}`;
  const issuerKey = authority.privateKey;
  const issued = { issuer, issuerKey, notBefore: startOfValidity, notAfter: endOfCentury };
  return {
    authority: issue({ ...issued, subject: issuer, publicKey: authority.publicKey, isAuthority: true }),
    cert: issue({ ...issued, subject: name, publicKey: server.publicKey, isAuthority: false }),
    key: toPem(server.privateKey),
  };
}

interface CertificateRequest {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly isAuthority: boolean;
  readonly issuer: string;
  readonly issuerKey: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

const startOfValidity = new Date("2020-01-01T00:00:00Z");
const endOfCentury = new Date("2099-12-31T23:59:59Z");

function issue({
  subject,
  publicKey,
  isAuthority,
  issuer,
  issuerKey,
  notBefore,
  notAfter,
}: CertificateRequest): string {
  const algorithm = sequence(der(tag.oid, ecdsaWithSha256));
  const names = sequence(der(tag.dnsName, Buffer.from("localhost")), der(tag.ipAddress, Buffer.of(127, 0, 0, 1)));
  // DER omits default values. By default, a certificate is not an authority.
  const authority = isAuthority ? sequence(der(tag.boolean, Buffer.of(0xff))) : sequence();
  const toBeSigned = sequence(
    // The version number 2 means X.509 version 3.
    der(tag.context0, der(tag.integer, Buffer.of(2))),
    // A leading byte 1 keeps the number positive.
    der(tag.integer, Buffer.of(1), randomBytes(8)),
    algorithm,
    distinguishedName(issuer),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(tag.context3, sequence(extension(subjectAltName, names), extension(basicConstraints, authority))),
  );
  const signature = sign("sha256", toBeSigned, issuerKey);
  // A bit string starts with its number of unused bits.
  return pem(sequence(toBeSigned, algorithm, der(tag.bitString, Buffer.of(0), signature)));
}

const generateKeys = (): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

const toPem = (privateKey: KeyObject): string => privateKey.export({ type: "pkcs8", format: "pem" });

const distinguishedName = (name: string): Buffer =>
  sequence(der(tag.set, sequence(der(tag.oid, commonName), der(tag.utf8String, Buffer.from(name)))));

function der(tagByte: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.of(tagByte, ...lengthOf(content)), content]);
}

// DER requires the shortest encoding of a length.
function lengthOf({ byteLength }: Buffer): readonly number[] {
  if (byteLength < 0x80) return [byteLength];
  return byteLength < 0x100 ? [0x81, byteLength] : [0x82, byteLength >> 8, byteLength & 0xff];
}

const sequence = (...contents: readonly Buffer[]): Buffer => der(tag.sequence, ...contents);
const extension = (oid: Buffer, value: Buffer): Buffer => sequence(der(tag.oid, oid), der(tag.octetString, value));

const time = (at: Date): Buffer =>
  der(tag.generalizedTime, Buffer.from(`${at.toISOString().replaceAll(/[-:T]|\..*/g, "")}Z`));

function pem(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
