/** How is an operator's file read, such as a key or a certificate? A named pipe could block the process. */
export { type CertificateValidity, pemBytesMax, validityProblem } from "./certificates.ts";
export { readRegularFile, readRegularFileSync } from "./regular-file.ts";
