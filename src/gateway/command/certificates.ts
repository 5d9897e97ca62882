import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { InputProblem } from "../check/index.ts";
import { messageOf } from "../errors/index.ts";
import type { CertificateFiles, CertificatePair, ProxySettings } from "./proxy-settings.ts";

/** The certificate that is served, until a reload replaces it. */
export class ServedCertificate {
  readonly path: string;
  /** Why the last reload has left the one before in use. */
  problem: string | undefined;
  /** When the files were last found to be usable, in ms since 1970. */
  lastSuccessMs: number = Date.now();
  current: CertificatePair;
  readonly #files: CertificateFiles;

  /** @throws InputProblem for files that cannot be read */
  constructor(files: CertificateFiles) {
    this.path = files.path;
    this.current = files.read();
    this.#files = files;
  }

  /**
   * Reads the files again. What does not match, has expired or is not valid yet does not replace what is valid.
   *
   * @returns whether they are in use
   */
  reload(): boolean {
    try {
      const pair = this.#files.read();
      createSecureContext(pair);
      const refusal = validityProblem(pair.cert);
      if (refusal !== undefined && validityProblem(this.current.cert) === undefined) throw new Error(refusal);
      this.current = pair;
      this.problem = undefined;
      this.lastSuccessMs = Date.now();
      return true;
    } catch (error) {
      this.problem = messageOf(error);
      return false;
    }
  }
}

/** Returns why clients refuse a certificate now, going by its dates (RFC 5280 §4.1.2.5); `undefined` if they accept it. */
function validityProblem(pem: string): string | undefined {
  // Of a chain the first one counts.
  const { validFromDate, validToDate } = new X509Certificate(pem);
  const nowMs = Date.now();
  if (nowMs < validFromDate.getTime()) return `the certificate is not valid before ${validFromDate.toISOString()}`;
  return nowMs > validToDate.getTime() ? `the certificate expired at ${validToDate.toISOString()}` : undefined;
}

/**
 * Checks the certificates of settings.
 *
 * @throws InputProblem for a certificate and a key that do not belong together, or are none, or have expired
 */
export function requireCertificates({ tls: files, upstreamTls }: ProxySettings): void {
  const tls = files?.read();
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new InputProblem(`--tls-cert and --tls-key cannot be used: ${messageOf(error)}`);
  }
  // Of a chain the first one counts, of authorities any.
  requireCurrent("--tls-cert", certificatesOf("--tls-cert", tls?.cert).slice(0, 1));
  requireCurrent("--upstream-cert", certificatesOf("--upstream-cert", upstreamTls?.cert).slice(0, 1));
  requireCurrent("--upstream-ca", certificatesOf("--upstream-ca", upstreamTls?.ca));
}

// Of authorities, node takes those before the first one that it cannot read, without a word.
function certificatesOf(option: string, pem: unknown): readonly X509Certificate[] {
  const texts = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return texts.map((text) => new X509Certificate(text));
  } catch (error) {
    throw new InputProblem(`a certificate of ${option} cannot be read: ${messageOf(error)}`);
  }
}

function requireCurrent(option: string, certificates: readonly X509Certificate[]): void {
  const notAfterMs = Math.max(...certificates.map(({ validToDate }) => validToDate.getTime()));
  if (certificates.length === 0 || notAfterMs > Date.now()) return;
  throw new InputProblem(`the certificate of ${option} expired at ${new Date(notAfterMs).toISOString()}`);
}
