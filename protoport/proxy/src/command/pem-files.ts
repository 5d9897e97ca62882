import { messageOf } from "@protoport/gateway/errors";
import { maxPemBytes, readRegularFileSync } from "@protoport/command-line";
import { InputError } from "../definitions/index.ts";

/** The PEM files for a certificate chain and its private key. */
export interface CertificateFiles {
  /** Both files' paths, for error messages. */
  readonly path: string;
  /** Reads both files. @throws InputError */
  read(): CertificatePair;
}

/** A certificate chain and its private key, in PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Returns the files for a certificate path and a key path. */
export function toCertificateFiles(cert: string, key: string): CertificateFiles {
  return { path: `${cert}, ${key}`, read: () => ({ cert: readPem(cert), key: readPem(key) }) };
}

/** Reads a PEM file. @throws InputError if it cannot be read or is not PEM */
export function readPem(path: string): string {
  let text: string;
  try {
    text = readRegularFileSync(path, maxPemBytes).toString("utf8");
  } catch (error) {
    throw new InputError(`cannot read ${path}: ${messageOf(error)}`);
  }
  // For an empty string, Node would trust the system's certificates or serve without a certificate.
  if (!text.includes("-----BEGIN ")) throw new InputError(`${path} does not contain a PEM certificate or key`);
  return text;
}
