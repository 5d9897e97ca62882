import type { X509Certificate } from "node:crypto";

/** Maximum size of a PEM file, in bytes. A system's bundle of CA certificates is smaller than 1 MiB. */
export const pemBytesMax: number = 1024 * 1024;

/** The period in which a certificate is valid (RFC 5280 §4.1.2.5). */
export type CertificateValidity = Pick<X509Certificate, "validFromDate" | "validToDate">;

/**
 * Returns why a certificate is not valid now, or `undefined` if it is valid. The text is a phrase that follows "the
 * certificate".
 */
export function validityProblem({ validFromDate, validToDate }: CertificateValidity): string | undefined {
  const nowMs = Date.now();
  if (nowMs < validFromDate.getTime()) return `is not valid before ${validFromDate.toISOString()}`;
  return nowMs > validToDate.getTime() ? `expired at ${validToDate.toISOString()}` : undefined;
}
