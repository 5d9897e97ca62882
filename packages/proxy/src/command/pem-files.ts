import { messageOf } from "@plantstore/http";
import { readRegularFileSync } from "@plantstore/command-line";
import { InputError } from "../check/index.ts";

/** A certificate chain's PEM files and its private key. */
export interface CertificateFiles {
  /** Both paths, for messages. */
  readonly path: string;
  /** Reads both files. @throws InputError */
  read(): CertificatePair;
}

/** What {@link CertificateFiles} contain. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Returns a certificate's files and its key. */
export function toCertificateFiles(cert: string, key: string): CertificateFiles {
  return { path: `${cert}, ${key}`, read: () => ({ cert: readPem(cert), key: readPem(key) }) };
}

/** Maximum bytes in a PEM file. 1 MiB: more than all system authorities. */
const pemBytesMax = 1024 * 1024;

/** Reads a PEM file. @throws InputError if it cannot be read or is not PEM */
export function readPem(path: string): string {
  let text: string;
  try {
    text = readRegularFileSync(path, pemBytesMax).toString("utf8");
  } catch (error) {
    throw new InputError(`cannot read ${path}: ${messageOf(error)}`);
  }
  // Node ignores an empty string, and would then trust the system's certificates or serve without a certificate.
  if (!text.includes("-----BEGIN ")) throw new InputError(`${path} does not contain a PEM certificate or key`);
  return text;
}
