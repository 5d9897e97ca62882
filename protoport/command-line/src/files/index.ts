/** Reads files that an operator configures, such as keys and certificates, without blocking on a named pipe. */
export {
  type CertificateValidity,
  type KeyPair,
  parseCertificates,
  maxPemBytes,
  readKeyPair,
  validityProblem,
} from "./certificates.ts";
export { readRegularFile, readRegularFileSync } from "./regular-file.ts";
